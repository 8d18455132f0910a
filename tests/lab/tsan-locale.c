/* gpuraid: preloaded with gcc's libtsan into nbdkit, for the tests alone.
 *
 * A library that nbdkit needs (p11-kit, through GnuTLS) calls newlocale
 * before libtsan is ready: libtsan swallows the lock but not the unlock,
 * and the next newlocale or duplocale, json-c's, waits for ever.  The
 * tests need no locale but the one that is set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <locale.h>

locale_t
newlocale (int mask, const char *name, locale_t base)
{
  return LC_GLOBAL_LOCALE;
}

locale_t
duplocale (locale_t l)
{
  return LC_GLOBAL_LOCALE;
}

void
freelocale (locale_t l)
{
}
