/* gpuraid: make a function of another program return.
 *
 * The unwinder, which exceptions of C++ use, knows what each register that
 * survives a call holds in the frames above.  They are loaded, and the thread
 * goes on there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdint.h>
#include <unwind.h>

#include "old-nbdkit/frames.h"

#ifdef __x86_64__

/* In the order in which resume_with_error reads them. */
struct frame {
  uintptr_t rbx, rbp, r12, r13, r14, r15, sp, ip;
};

struct search {
  uintptr_t call;
  _Bool is_next, is_found;
  struct frame frame;
};

/* The numbers are those of the ABI's DWARF table. */
static _Unwind_Reason_Code
look (struct _Unwind_Context *context, void *opaque)
{
  struct search *s = opaque;

  if (!s->is_next) {
    s->is_next = _Unwind_GetIP (context) == s->call;
    return _URC_NO_REASON;
  }
  s->frame = (struct frame) {
    .rbx = _Unwind_GetGR (context, 3),
    .rbp = _Unwind_GetGR (context, 6),
    .r12 = _Unwind_GetGR (context, 12),
    .r13 = _Unwind_GetGR (context, 13),
    .r14 = _Unwind_GetGR (context, 14),
    .r15 = _Unwind_GetGR (context, 15),
    .sp = _Unwind_GetCFA (context),
    .ip = _Unwind_GetIP (context),
  };
  s->is_found = 1;
  return _URC_NORMAL_STOP;
}

/* Once rsp is set, *f may be overwritten by a signal's handler. */
static _Noreturn void
resume_with_error (const struct frame *f)
{
  asm volatile ("movq (%0), %%rbx\n\t"
                "movq 16(%0), %%r12\n\t"
                "movq 24(%0), %%r13\n\t"
                "movq 32(%0), %%r14\n\t"
                "movq 40(%0), %%r15\n\t"
                "movq 56(%0), %%rcx\n\t"
                "movq 8(%0), %%rbp\n\t"
                "movq 48(%0), %%rsp\n\t"
                "movl $-1, %%eax\n\t"
                "jmp *%%rcx"
                : : "d" (f) : "memory");
  __builtin_unreachable ();
}

_Bool
frames_known (void)
{
  return 1;
}

void
frames_return_error (const void *call)
{
  struct search s = { .call = (uintptr_t) call };

  _Unwind_Backtrace (look, &s);
  if (s.is_found)
    resume_with_error (&s.frame);
}

#else

_Bool
frames_known (void)
{
  return 0;
}

void
frames_return_error (const void *call)
{
}

#endif
