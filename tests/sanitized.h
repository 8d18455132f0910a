/* gpuraid: tests of many moments, or many cases, with a sanitizer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SANITIZED_H
#define GPURAID_TEST_SANITIZED_H

/* Such a build is slow, and looks for mistakes that one case in five, or ten,
 * shows as well; without one every case is tried.
 */
#if defined __SANITIZE_THREAD__
#define CASE_STEP 10
#elif defined __SANITIZE_ADDRESS__
#define CASE_STEP 5
#else
#define CASE_STEP 1
#endif

#endif
