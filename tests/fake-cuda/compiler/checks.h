/* gpuraid: tests: the functions that the compiler calls to check accesses.
 *
 * With -fsanitize=thread for memory, and with bounds, alignment and
 * shift-exponent for indices, addresses and shifts.  The sanitizers' libraries
 * are not used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAKE_CUDA_CHECKS_H
#define GPURAID_FAKE_CUDA_CHECKS_H

#include "tests/fake-cuda/compiler/runtime.h"

static const struct emu_runtime *emu_rt;
static thread_local char emu_made;

/* By another name, because the declarations that the compiler expects differ
 * between versions.
 */
#define EMU_HOOK(name, args)                                            \
  extern "C" void emu_##name args asm ("__" #name);                     \
  extern "C" __attribute__ ((no_sanitize_thread, used)) void            \
  emu_##name args

#define EMU_INLINE \
  static inline __attribute__ ((no_sanitize_thread, always_inline))

EMU_INLINE const struct emu_thread *
emu_self (void)
{
  __UINTPTR_TYPE__ sp = (__UINTPTR_TYPE__) __builtin_frame_address (0);

  return ((struct emu_thread **) ((sp | (EMU_STACK_LEN - 1)) + 1))[-1];
}

EMU_INLINE void
emu_check (void *p, __SIZE_TYPE__ len, int write)
{
  const struct emu_thread *t = emu_self ();
  __UINTPTR_TYPE__ a = (__UINTPTR_TYPE__) p;

  if (!(a >= t->lo && a + len <= t->hi) &&
      !(a >= t->stack_lo && a + len <= t->stack_hi))
    emu_rt->check (p, len, write);
}

/* Memory of the emulator is accessed only in functions that are not checked
 * themselves, and so must not be inlined into one that is.
 */
#define EMU_OUT static __attribute__ ((noinline, unused, no_sanitize_thread))

EMU_OUT __attribute__ ((const)) struct emu_dim
emu_thread_idx (void)
{
  return emu_self ()->thread;
}

EMU_OUT __attribute__ ((const)) struct emu_dim
emu_block_idx (void)
{
  return emu_self ()->block;
}

EMU_OUT __attribute__ ((const)) struct emu_dim
emu_block_dim (void)
{
  return emu_self ()->block_dim;
}

EMU_OUT __attribute__ ((const)) struct emu_dim
emu_grid_dim (void)
{
  return emu_self ()->grid_dim;
}

EMU_OUT void
emu_fail (const char *file, unsigned line, const char *what)
{
  emu_rt->fail (file, line, what);
}

EMU_OUT unsigned
emu_barrier (unsigned line, unsigned value)
{
  return emu_rt->barrier (line, value);
}

EMU_OUT void
emu_exchange (unsigned line, unsigned mask, __UINT64_TYPE__ value,
              __UINT64_TYPE__ *all)
{
  emu_rt->exchange (line, mask, value, all);
}

EMU_OUT __UINT64_TYPE__
emu_atomic (enum emu_atomic op, void *p, unsigned len, __UINT64_TYPE__ v,
            __UINT64_TYPE__ c)
{
  return emu_rt->atomic (op, p, len, v, c);
}

/* The C library makes all of a module's when the first is used. */
EMU_OUT void
emu_make_shared (void)
{
  *(volatile char *) &emu_made = 1;
}

#define EMU_HOOKS(len)                                                  \
  EMU_HOOK (tsan_read##len, (void *p)) { emu_check (p, len, 0); }       \
  EMU_HOOK (tsan_write##len, (void *p)) { emu_check (p, len, 1); }      \
  EMU_HOOK (tsan_unaligned_read##len, (void *p))                        \
  { emu_check (p, len, 0); }                                            \
  EMU_HOOK (tsan_unaligned_write##len, (void *p))                       \
  { emu_check (p, len, 1); }                                            \
  EMU_HOOK (tsan_volatile_read##len, (void *p))                         \
  { emu_check (p, len, 0); }                                            \
  EMU_HOOK (tsan_volatile_write##len, (void *p))                        \
  { emu_check (p, len, 1); }

EMU_HOOKS (1)
EMU_HOOKS (2)
EMU_HOOKS (4)
EMU_HOOKS (8)
EMU_HOOKS (16)

EMU_HOOK (tsan_init, (void)) { }
EMU_HOOK (tsan_func_entry, (void *)) { }
EMU_HOOK (tsan_func_exit, (void)) { }
EMU_HOOK (tsan_vptr_update, (void *, void *)) { }

EMU_HOOK (tsan_read_range, (void *p, unsigned long len))
{
  emu_check (p, len, 0);
}

EMU_HOOK (tsan_write_range, (void *p, unsigned long len))
{
  emu_check (p, len, 1);
}

/* The argument of these three begins with the place in the source. */
struct emu_place {
  const char *file;
  unsigned line, column;
};

EMU_HOOK (ubsan_handle_out_of_bounds, (void *data, __UINTPTR_TYPE__))
{
  struct emu_place *p = (struct emu_place *) data;

  emu_fail (p->file, p->line, "array index out of bounds");
}

EMU_HOOK (ubsan_handle_type_mismatch_v1, (void *data, __UINTPTR_TYPE__))
{
  struct emu_place *p = (struct emu_place *) data;

  emu_fail (p->file, p->line, "misaligned address");
}

EMU_HOOK (ubsan_handle_shift_out_of_bounds,
          (void *data, __UINTPTR_TYPE__, __UINTPTR_TYPE__))
{
  struct emu_place *p = (struct emu_place *) data;

  emu_fail (p->file, p->line, "shift by as many bits as there are");
}

#endif
