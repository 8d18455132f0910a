/* gpuraid: tests: stacks to run emulated threads on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAKE_CUDA_FIBER_H
#define GPURAID_FAKE_CUDA_FIBER_H

#include <stddef.h>
#include <stdint.h>

#if !defined __x86_64__
#include <ucontext.h>
#endif

#include "tests/fake-cuda/compiler/runtime.h"

#define FIBER_STACK_LEN (EMU_STACK_LEN - 4096 - 16)

struct fiber_context {
#if defined __x86_64__
  void *sp;
#else
  ucontext_t u;
#endif
};

struct fiber {
  struct fiber_context context;
  char *stack;                  /* FIBER_STACK_LEN, above a guard page */
};

/* self: for emu_self, in compiler/checks.h.  -1: no memory.  All in one
 * thread.
 */
extern int fiber_new (struct fiber *, void *self);
extern void fiber_free (struct fiber *);

/* The next switch to it calls entry, which must never return. */
extern void fiber_reset (struct fiber *, void (*entry) (void));

/* Continue at to, and return when a fiber switches to from. */
extern void fiber_switch (struct fiber_context *from,
                          struct fiber_context *to);

#endif
