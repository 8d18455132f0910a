/* gpuraid: tests: registers of any size in user-mode Linux.
 *
 * User-mode Linux 6.1 keeps 2696 bytes of the registers of its processes, and
 * gives these back to ptrace.  On a processor with more (AMX) the kernel
 * refuses any other length than the whole one, and user-mode Linux ends at
 * once.  Loaded into it, this adds the rest, as it is: AMX, which nothing uses
 * there, since a process has to ask for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#define _GNU_SOURCE     /* RTLD_NEXT */

#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef long ptrace_fn (int, pid_t, void *, void *);

static long
set_registers (ptrace_fn *next, pid_t pid, void *type, struct iovec *some)
{
  static uint8_t buf[64 * 1024];        /* it has one thread */
  struct iovec whole = { buf, sizeof buf };

  if (next (PTRACE_GETREGSET, pid, type, &whole) == -1 ||
      whole.iov_len <= some->iov_len)
    return next (PTRACE_SETREGSET, pid, type, some);
  memcpy (buf, some->iov_base, some->iov_len);
  return next (PTRACE_SETREGSET, pid, type, &whole);
}

long
ptrace (enum __ptrace_request request, ...)
{
  ptrace_fn *next = (ptrace_fn *) dlsym (RTLD_NEXT, "ptrace");
  void *addr, *data;
  va_list args;
  pid_t pid;

  va_start (args, request);
  pid = va_arg (args, pid_t);
  addr = va_arg (args, void *);
  data = va_arg (args, void *);
  va_end (args);
  if (request == PTRACE_SETREGSET && (uintptr_t) addr == NT_X86_XSTATE)
    return set_registers (next, pid, addr, data);
  return next (request, pid, addr, data);
}
