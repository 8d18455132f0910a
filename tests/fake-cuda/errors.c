/* gpuraid: tests: a fake CUDA driver: the names of errors.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "tests/fake-cuda/fake.h"

static const struct error {
  CUresult code;
  const char *name, *text;
} errors[] = {
  { 0, "CUDA_SUCCESS", "no error" },
  { 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
  { 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
  { 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
  { 46, "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "CUDA-capable device(s) is/are busy or unavailable" },
  { 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
  { 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
  { 200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
  { 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
  { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "no kernel image is available for execution on the device" },
  { 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
  { 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
  { 600, "CUDA_ERROR_NOT_READY", "device not ready" },
  { 700, "CUDA_ERROR_ILLEGAL_ADDRESS",
    "an illegal memory access was encountered" },
  { 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
  { 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
    "part or all of the requested memory range is already mapped" },
  { 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
    "pointer does not correspond to a registered memory region" },
  { 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
  { 999, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

static const struct error *
find_error (CUresult code)
{
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
    if (errors[i].code == code)
      return &errors[i];
  return NULL;
}

CUresult
cuGetErrorName (CUresult code, const char **name)
{
  const struct error *e = find_error (code);

  *name = e ? e->name : NULL;
  return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
cuGetErrorString (CUresult code, const char **text)
{
  const struct error *e = find_error (code);

  *text = e ? e->text : NULL;
  return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
