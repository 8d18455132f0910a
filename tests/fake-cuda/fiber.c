/* gpuraid: tests: stacks to run emulated threads on.
 *
 * swapcontext makes a system call; kernels with barriers switch a million
 * times, so for the usual processor it is done by hand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/fake-cuda/fiber.h"

#define GUARD_LEN 4096u

int
fiber_new (struct fiber *f, void *self)
{
  char *p = mmap (NULL, 2 * EMU_STACK_LEN, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  size_t skip;

  if (p == MAP_FAILED)
    return -1;
  skip = -(uintptr_t) p % EMU_STACK_LEN;
  if (skip)
    (void) munmap (p, skip);
  (void) munmap (p + skip + EMU_STACK_LEN, EMU_STACK_LEN - skip);
  p += skip;
  (void) mprotect (p, GUARD_LEN, PROT_NONE);
  f->stack = p + GUARD_LEN;
  memcpy (p + EMU_STACK_LEN - sizeof self, &self, sizeof self);
  return 0;
}

void
fiber_free (struct fiber *f)
{
  if (f->stack)
    munmap (f->stack - GUARD_LEN, EMU_STACK_LEN);
  f->stack = NULL;
}

#if defined __x86_64__

/* The registers that a callee must keep, and the stack. */
asm (".text\n"
     ".type fiber_swap, @function\n"
     "fiber_swap:\n"
     "  push %rbp\n"
     "  push %rbx\n"
     "  push %r12\n"
     "  push %r13\n"
     "  push %r14\n"
     "  push %r15\n"
     "  mov %rsp, (%rdi)\n"
     "  mov %rsi, %rsp\n"
     "  pop %r15\n"
     "  pop %r14\n"
     "  pop %r13\n"
     "  pop %r12\n"
     "  pop %rbx\n"
     "  pop %rbp\n"
     "  ret\n"
     ".size fiber_swap, . - fiber_swap\n");

extern void fiber_swap (void **from, void *to);

void
fiber_reset (struct fiber *f, void (*entry) (void))
{
  void **sp = (void **) (f->stack + FIBER_STACK_LEN);

  *--sp = NULL;                 /* entry has nowhere to return to */
  *--sp = (void *) entry;
  for (int i = 0; i < 6; i++)
    *--sp = NULL;
  f->context.sp = sp;
}

void
fiber_switch (struct fiber_context *from, struct fiber_context *to)
{
  fiber_swap (&from->sp, to->sp);
}

#else

void
fiber_reset (struct fiber *f, void (*entry) (void))
{
  getcontext (&f->context.u);
  f->context.u.uc_stack.ss_sp = f->stack;
  f->context.u.uc_stack.ss_size = FIBER_STACK_LEN;
  f->context.u.uc_link = NULL;
  makecontext (&f->context.u, entry, 0);
}

void
fiber_switch (struct fiber_context *from, struct fiber_context *to)
{
  swapcontext (&from->u, &to->u);
}

#endif
