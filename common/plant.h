/* gpuraid: mistakes that tests plant.
 *
 * To show that the tests find mistakes, places that keep a rule have a switch
 * that breaks it: PLANTED ("name") is true in a build with PLANT=yes that is
 * run with PLANT=name in the environment.  In every other build it is the
 * constant false and compiles to nothing.  docs/testing.md lists them, and says
 * which test finds each; scripts/planted tries those of the engine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PLANT_H
#define GPURAID_PLANT_H

#include <stdbool.h>

#ifdef GPURAID_PLANT
extern bool planted (const char *name);
#define PLANTED(name) planted (name)
#else
#define PLANTED(name) false
#endif

#endif
