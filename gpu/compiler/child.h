/* gpuraid: compile in a process of its own.
 *
 * While NVRTC compiles, it has signal handlers of its own: a SIGTERM then ends
 * the process with status 4, and a server that was asked to stop would not
 * write out its cache.  So a server compiles in a child.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_COMPILER_CHILD_H
#define GPURAID_COMPILER_CHILD_H

#include <stddef.h>

/* In the environment of such a child. */
#define COMPILER_CHILD_ENV "GPURAID_COMPILER_CHILD"

/* From now on compiler_run starts argv, borrowed, ended by NULL, with that
 * variable in its environment.  The program must call compiler_child_main at
 * once.  Call this before threads are made.
 */
extern void compiler_use_child (const char *const *argv);

/* In the child: does what compiler_run asks on stdin, answers on stdout, and
 * does not return.
 */
extern void compiler_child_main (void) __attribute__ ((noreturn));

/* Kill the child that compiles now, if any: compiler_run then fails.  No child
 * is started until compiler_child_allow.  Any thread.
 */
extern void compiler_child_kill (void);
extern void compiler_child_allow (void);

#endif
