/* gpuraid: are the other members there?
 *
 * One that does not answer a write may be the first of several that stopped
 * together, of which the others are owed nothing and so can't be overdue.
 * Before it is taken out they are asked: each has to answer a small read.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WATCH_ASK_H
#define GPURAID_WATCH_ASK_H

#include "array/engine/shared.h"

/* A member was found to be overdue, or is still: ask the active members if
 * that was not done lately, or if news: it is another one than before.
 */
extern void ask_others (struct array *a, bool news, uint64_t now);

/* What an active member said. */
enum ask_answer {
  ASK_OPEN,                     /* it has a moment to answer */
  ASK_THERE,
  ASK_SILENT,
};
extern enum ask_answer ask_answer (const struct array *a, const struct seat *s,
                                   uint64_t now);

#endif
