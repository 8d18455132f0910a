/* gpuraid: tests: start a sanitizer before other code runs.
 *
 * Loaded after libasan or libtsan into a program that was not built with it.
 * There the sanitizer starts at the first malloc, and in nbdkit that one comes
 * from p11-kit, inside newlocale, which holds a lock of the C library.  The
 * sanitizer's start takes and drops that lock too, and leaves it broken: the
 * next newlocale in a thread (json-c) waits forever.  The linker flag initfirst
 * runs this before all other constructors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

static void *volatile p;

static void __attribute__ ((constructor))
first_malloc (void)
{
  p = malloc (1);
  free (p);
}
