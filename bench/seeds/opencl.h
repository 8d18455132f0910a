/* gpuraid: OpenCL, loaded when it is needed.
 *
 * The parts of its stable interface that we use are declared here, so that no
 * development package is needed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SEEDS_OPENCL_H
#define GPURAID_SEEDS_OPENCL_H

#include <stddef.h>
#include <stdint.h>

typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

#define CL_SUCCESS 0
#define CL_TRUE 1
#define CL_DEVICE_TYPE_GPU (1 << 2)
#define CL_DEVICE_TYPE_ALL UINT64_C (0xffffffff)
#define CL_DEVICE_MAX_WORK_GROUP_SIZE 0x1004
#define CL_DEVICE_NAME 0x102b
#define CL_DRIVER_VERSION 0x102d
#define CL_DEVICE_VERSION 0x102f
#define CL_QUEUE_PROFILING_ENABLE (1 << 1)
#define CL_MEM_WRITE_ONLY (1 << 1)
#define CL_MEM_READ_ONLY (1 << 2)
#define CL_KERNEL_WORK_GROUP_SIZE 0x11b0
#define CL_PROGRAM_BUILD_LOG 0x1183
#define CL_PROFILING_COMMAND_START 0x1282
#define CL_PROFILING_COMMAND_END 0x1283

/* X (our name, the library's, result, arguments) */
#define OPENCL_CALLS(X)                                                 \
  X (get_platforms, clGetPlatformIDs, int,                              \
     (unsigned nr, cl_platform_id *, unsigned *all))                    \
  X (get_devices, clGetDeviceIDs, int,                                  \
     (cl_platform_id, uint64_t type, unsigned nr, cl_device_id *,       \
      unsigned *all))                                                   \
  X (get_device_info, clGetDeviceInfo, int,                             \
     (cl_device_id, unsigned what, size_t, void *, size_t *))           \
  X (create_context, clCreateContext, cl_context,                       \
     (const intptr_t *, unsigned nr, const cl_device_id *,              \
      void (*notify) (const char *, const void *, size_t, void *),      \
      void *, int *error))                                              \
  X (release_context, clReleaseContext, int, (cl_context))              \
  X (create_queue, clCreateCommandQueue, cl_command_queue,              \
     (cl_context, cl_device_id, uint64_t properties, int *error))       \
  X (create_buffer, clCreateBuffer, cl_mem,                             \
     (cl_context, uint64_t flags, size_t, void *, int *error))          \
  X (release_mem, clReleaseMemObject, int, (cl_mem))                    \
  X (create_program, clCreateProgramWithSource, cl_program,             \
     (cl_context, unsigned nr, const char **, const size_t *,           \
      int *error))                                                      \
  X (build_program, clBuildProgram, int,                                \
     (cl_program, unsigned nr, const cl_device_id *, const char *,      \
      void (*notify) (cl_program, void *), void *))                     \
  X (release_program, clReleaseProgram, int, (cl_program))              \
  X (create_kernel, clCreateKernel, cl_kernel,                          \
     (cl_program, const char *, int *error))                            \
  X (release_kernel, clReleaseKernel, int, (cl_kernel))                 \
  X (get_work_group_info, clGetKernelWorkGroupInfo, int,                \
     (cl_kernel, cl_device_id, unsigned what, size_t, void *,           \
      size_t *))                                                        \
  X (set_kernel_arg, clSetKernelArg, int,                               \
     (cl_kernel, unsigned nr, size_t, const void *))                    \
  X (enqueue_write, clEnqueueWriteBuffer, int,                          \
     (cl_command_queue, cl_mem, unsigned wait, size_t off, size_t,      \
      const void *, unsigned nr, const cl_event *, cl_event *))         \
  X (enqueue_read, clEnqueueReadBuffer, int,                            \
     (cl_command_queue, cl_mem, unsigned wait, size_t off, size_t,      \
      void *, unsigned nr, const cl_event *, cl_event *))               \
  X (enqueue_kernel, clEnqueueNDRangeKernel, int,                       \
     (cl_command_queue, cl_kernel, unsigned dims, const size_t *off,    \
      const size_t *global, const size_t *local, unsigned nr,           \
      const cl_event *, cl_event *))                                    \
  X (get_event_profile, clGetEventProfilingInfo, int,                   \
     (cl_event, unsigned what, size_t, void *, size_t *))               \
  X (release_event, clReleaseEvent, int, (cl_event))                    \
  X (finish, clFinish, int, (cl_command_queue))

struct opencl {
#define X(name, symbol, result, args) result (*name) args;
  OPENCL_CALLS (X)
#undef X
};

/* Open the library, once in a process; any thread.  NULL: why (why_len bytes)
 * says what is missing.
 *
 * OpenCL compilers keep their output in the user's home directory; this turns
 * that off for PoCL and NVIDIA, unless the environment says otherwise, so that
 * a timed compilation really compiles.
 */
extern const struct opencl *opencl_get (char *why, size_t why_len);

#endif
