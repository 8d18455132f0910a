/* gpuraid: the CUDA driver, loaded when it is needed.
 *
 * libcuda.so.1 belongs to the driver, not to the toolkit, and is not on every
 * machine.  So it is opened at run time, and the parts of its stable interface
 * that we use are declared here.  test-cuda-header.c compares this with
 * cuda.h if the toolkit is installed.
 *
 * Nothing here may be called before the server's fork.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_DEVICE_DRIVER_H
#define GPURAID_DEVICE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

#define CUDA_SUCCESS 0
#define CUDA_ERROR_OUT_OF_MEMORY 2
#define CUDA_ERROR_NOT_READY 600
#define CUDA_ERROR_CONTEXT_IS_DESTROYED 709
#define CUDA_ERROR_LAUNCH_FAILED 719

#define CU_EVENT_DEFAULT 0
#define CU_EVENT_BLOCKING_SYNC 1
#define CU_EVENT_DISABLE_TIMING 2
#define CU_STREAM_NON_BLOCKING 1
#define CU_MEMHOSTREGISTER_PORTABLE 1
#define CU_MEMHOSTREGISTER_DEVICEMAP 2
#define CU_MEMHOSTALLOC_PORTABLE 1
#define CU_MEMHOSTALLOC_DEVICEMAP 2

#define CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT 16
#define CU_DEVICE_ATTRIBUTE_CLOCK_RATE 13
#define CU_DEVICE_ATTRIBUTE_PCI_BUS_ID 33
#define CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE 38
#define CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT 40
#define CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR 75
#define CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR 76
#define CU_FUNC_ATTRIBUTE_NUM_REGS 4
#define CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES 3
#define CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES 8

typedef struct {
  int srcAccessOrder;           /* CU_MEMCPY_SRC_ACCESS_ORDER_... */
  struct { int type, id; } srcLocHint, dstLocHint;
  unsigned flags;
} CUmemcpyAttributes;

#define CU_MEMCPY_SRC_ACCESS_ORDER_STREAM 1

/* X (our name, the driver's symbol, arguments) */
#define DRIVER_CALLS(X)                                                 \
  X (init, cuInit, (unsigned flags))                                    \
  X (driver_get_version, cuDriverGetVersion, (int *))                   \
  X (get_error_name, cuGetErrorName, (CUresult, const char **))         \
  X (get_error_string, cuGetErrorString, (CUresult, const char **))     \
  X (device_get_count, cuDeviceGetCount, (int *))                       \
  X (device_get, cuDeviceGet, (CUdevice *, int nr))                     \
  X (device_get_name, cuDeviceGetName, (char *, int len, CUdevice))     \
  X (device_get_attribute, cuDeviceGetAttribute,                        \
     (int *, int attribute, CUdevice))                                  \
  X (device_total_mem, cuDeviceTotalMem_v2, (size_t *, CUdevice))       \
  X (primary_ctx_retain, cuDevicePrimaryCtxRetain,                      \
     (CUcontext *, CUdevice))                                           \
  X (primary_ctx_release, cuDevicePrimaryCtxRelease_v2, (CUdevice))     \
  X (primary_ctx_reset, cuDevicePrimaryCtxReset_v2, (CUdevice))         \
  X (primary_ctx_get_state, cuDevicePrimaryCtxGetState,                 \
     (CUdevice, unsigned *flags, int *active))                          \
  X (ctx_create, cuCtxCreate_v2, (CUcontext *, unsigned flags, CUdevice)) \
  X (ctx_destroy, cuCtxDestroy_v2, (CUcontext))                         \
  X (ctx_set_current, cuCtxSetCurrent, (CUcontext))                     \
  X (ctx_synchronize, cuCtxSynchronize, (void))                         \
  X (stream_create, cuStreamCreateWithPriority,                         \
     (CUstream *, unsigned flags, int priority))                        \
  X (stream_destroy, cuStreamDestroy_v2, (CUstream))                    \
  X (stream_synchronize, cuStreamSynchronize, (CUstream))               \
  X (stream_wait_event, cuStreamWaitEvent,                              \
     (CUstream, CUevent, unsigned flags))                               \
  X (ctx_get_stream_priority_range, cuCtxGetStreamPriorityRange,        \
     (int *least, int *greatest))                                       \
  X (event_create, cuEventCreate, (CUevent *, unsigned flags))          \
  X (event_destroy, cuEventDestroy_v2, (CUevent))                       \
  X (event_record, cuEventRecord, (CUevent, CUstream))                  \
  X (event_query, cuEventQuery, (CUevent))                              \
  X (event_synchronize, cuEventSynchronize, (CUevent))                  \
  X (event_elapsed_time, cuEventElapsedTime,                            \
     (float *ms, CUevent start, CUevent end))                           \
  X (mem_alloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                 \
  X (mem_free, cuMemFree_v2, (CUdeviceptr))                             \
  X (mem_host_alloc, cuMemHostAlloc, (void **, size_t, unsigned flags)) \
  X (mem_free_host, cuMemFreeHost, (void *))                            \
  X (mem_host_register, cuMemHostRegister_v2,                           \
     (void *, size_t, unsigned flags))                                  \
  X (mem_host_unregister, cuMemHostUnregister, (void *))                \
  X (mem_host_get_device_pointer, cuMemHostGetDevicePointer_v2,         \
     (CUdeviceptr *, void *, unsigned flags))                           \
  X (memcpy_htod, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) \
  X (memcpy_dtoh, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))       \
  X (memcpy_htod_async, cuMemcpyHtoDAsync_v2,                           \
     (CUdeviceptr, const void *, size_t, CUstream))                     \
  X (memcpy_dtoh_async, cuMemcpyDtoHAsync_v2,                           \
     (void *, CUdeviceptr, size_t, CUstream))                           \
  X (memcpy_dtod_async, cuMemcpyDtoDAsync_v2,                           \
     (CUdeviceptr, CUdeviceptr, size_t, CUstream))                      \
  X (memset_d8_async, cuMemsetD8Async,                                  \
     (CUdeviceptr, unsigned char, size_t, CUstream))                    \
  X (module_load_data, cuModuleLoadData, (CUmodule *, const void *))    \
  X (module_unload, cuModuleUnload, (CUmodule))                         \
  X (module_get_function, cuModuleGetFunction,                          \
     (CUfunction *, CUmodule, const char *name))                        \
  X (module_get_global, cuModuleGetGlobal_v2,                           \
     (CUdeviceptr *, size_t *, CUmodule, const char *name))             \
  X (func_get_attribute, cuFuncGetAttribute,                            \
     (int *, int attribute, CUfunction))                                \
  X (func_set_attribute, cuFuncSetAttribute,                            \
     (CUfunction, int attribute, int))                                  \
  X (launch_kernel, cuLaunchKernel,                                     \
     (CUfunction, unsigned grid_x, unsigned grid_y, unsigned grid_z,    \
      unsigned block_x, unsigned block_y, unsigned block_z,             \
      unsigned shared_len, CUstream, void **params, void **extra))

/* Those that older drivers lack: NULL there.  From CUDA 13: a batch of copies
 * at little more than the cost of one, in any order among themselves.
 */
#define DRIVER_OPTIONAL_CALLS(X)                                        \
  X (memcpy_batch_async, cuMemcpyBatchAsync_v2,                         \
     (CUdeviceptr *dst, CUdeviceptr *src, size_t *len, size_t nr,       \
      CUmemcpyAttributes *, size_t *first_of_attributes,                \
      size_t nr_attributes, CUstream))

struct driver {
#define X(name, symbol, args) CUresult (*name) args;
  DRIVER_CALLS (X)
  DRIVER_OPTIONAL_CALLS (X)
#undef X
};

/* Open the library and initialize it, once in a process; any thread.
 * NULL: why (one line, why_len bytes) says what is missing.
 */
extern const struct driver *driver_get (char *why, size_t why_len);

/* "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"; buf is returned. */
#define DRIVER_ERROR_LEN 160
extern const char *driver_error (const struct driver *, CUresult, char *buf);

#endif
