/* gpuraid: what is written around a kernel, of bytes or packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "gpu/text/internal.h"

/* The lines before the frame. */
void
kernel_source_begin (FILE *fp, const struct matrix *a, bool crc,
                     const struct kernel_frame *f)
{
  fprintf (fp, "#define COLS %u\n#define ROWS %u\n", a->cols, a->rows);
  fprintf (fp, "#define BLOCK %u\n#define BYTES %u\n", f->block, f->bytes);
  if (f->signed_cells)
    fprintf (fp, "#define CELL_NR int\n");
  if (f->min_blocks > 0)
    fprintf (fp, "#define MIN_BLOCKS %u\n", f->min_blocks);
  fprintf (fp, "#define W %u\n#define PACKET_LEN %zu\n", f->w, a->packet_len);
  if (crc)
    fprintf (fp, "#define CRC_WORDS %u\n#define CRC_STRIDE %u\n"
             "#define CRC_STEP %u\n", f->crc_words, f->crc_stride,
             f->crc_step);
  fputs (source_specialised, fp);
  fprintf (fp, "\nINLINE void\ncode (const struct kernel_params &p, "
           "const struct place &here)\n{\n");
}

void
kernel_source_flush (FILE *fp, unsigned n, unsigned nr)
{
  if (n + 1 == nr || (n + 1) % CRC_PENDING == 0)
    fprintf (fp, "  CRC_FLUSH (%u, %u);\n", n / CRC_PENDING * CRC_PENDING,
             n % CRC_PENDING + 1);
}
