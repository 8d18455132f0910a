/* gpuraid: machine code for the kernels of a matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "gpu/choice/internal.h"
#include "gpu/compiler/compiler.h"

/* The text itself is in the key: it describes the matrix completely, and a
 * change of the writer needs no new version.
 */
static char *
make_key (const char *text, int arch, const char *compiler, size_t *len)
{
  char *key;
  int n = asprintf (&key, "version %d, sm_%d, NVRTC %s\n%s",
                    KERNEL_SOURCE_VERSION, arch, compiler, text);

  if (n == -1)
    return NULL;
  *len = n;
  return key;
}

static void
count (struct kernels *ks, unsigned *what)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

  ++*what;
}

int
kernels_code (struct kernels *ks, const char *text, int arch, bool fresh,
              void **code, size_t *len)
{
  CLEANUP_FREE char *key = NULL;
  char why[256];
  const char *compiler = compiler_version (why, sizeof why);
  size_t key_len;

  if (compiler == NULL) {
    log_error ("%s", why);
    return -1;
  }
  key = make_key (text, arch, compiler, &key_len);
  if (key == NULL) {
    log_error ("asprintf: %m");
    return -1;
  }
  if (!fresh &&
      kernel_store_get (ks->store, key, key_len, code, len) == 0) {
    count (ks, &ks->nr_from_store);
    return 0;
  }
  if (compiler_run (text, arch, NULL, code, len) == -1)
    return -1;
  count (ks, &ks->nr_compiled);
  kernel_store_put (ks->store, key, key_len, *code, *len);
  return 0;
}

void
kernels_code_forget (struct kernels *ks, const char *text, int arch)
{
  CLEANUP_FREE char *key = NULL;
  char why[256];
  const char *compiler = compiler_version (why, sizeof why);
  size_t len;

  if (compiler && (key = make_key (text, arch, compiler, &len)) != NULL)
    kernel_store_remove (ks->store, key, len);
}

/* Asking for an attribute makes the driver load the kernel now, and not when it
 * is launched.
 */
CUresult
kernel_function (struct gpu_device *dev, CUmodule module, const char *name,
                 CUfunction *function)
{
  int regs;
  CUresult r = dev->driver->module_get_function (function, module, name);

  return r ? r
    : dev->driver->func_get_attribute (&regs, CU_FUNC_ATTRIBUTE_NUM_REGS,
                                       *function);
}
