/* gpuraid test: the probe for libblkid without libblkid.
 *
 * Includes the probe, as it is in docs/upstream/libblkid-gpuraid.patch, and
 * gives it what it calls, as libblkid does it, but simple.  Prints what it
 * finds in a file: a line for each value.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLKID_USAGE_RAID 1
#define BLKID_PROBE_NONE 1
#define BLKID_NONE_MAGIC { { NULL } }
#define le32_to_cpu le32toh

struct probe {
  int fd;
  uint64_t size;
  mode_t mode;
  unsigned char buf[4096];      /* what was read last */
};
typedef struct probe *blkid_probe;

struct blkid_idmag {
  const char *magic;
};

struct blkid_idinfo {
  const char *name;
  int usage;
  int (*probefunc) (blkid_probe pr, const struct blkid_idmag *mag);
  uint64_t minsz;
  struct blkid_idmag magics[1];
};

static uint32_t
crc32c (uint32_t crc, const void *buf, size_t len)
{
  for (const uint8_t *p = buf; len > 0; p++, len--) {
    crc ^= *p;
    for (unsigned bit = 0; bit < 8; bit++)
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return crc;
}

static const unsigned char *
blkid_probe_get_buffer (blkid_probe pr, uint64_t off, size_t len)
{
  if (len > sizeof pr->buf || pread (pr->fd, pr->buf, len, off) != len)
    return NULL;
  return pr->buf;
}

static int
blkid_probe_is_wholedisk (blkid_probe pr)
{
  return S_ISBLK (pr->mode);
}

/* There are no partitions. */
static int
blkid_probe_is_covered_by_pt (blkid_probe pr, uint64_t off, uint64_t len)
{
  return 0;
}

static int
blkid_probe_verify_csum (blkid_probe pr, uint64_t crc, uint64_t expected)
{
  return crc == expected;
}

#define blkid_probe_sprintf_version(pr, ...) \
  (printf ("VERSION="), printf (__VA_ARGS__), putchar ('\n'))

static int
blkid_probe_set_uuid_as (blkid_probe pr, const unsigned char *uuid,
                         const char *name)
{
  printf ("%s=", name);
  for (unsigned i = 0; i < 16; i++)
    printf ("%s%02x", i >= 4 && i <= 10 && i % 2 == 0 ? "-" : "", uuid[i]);
  printf ("\n");
  return 0;
}

static int
blkid_probe_set_uuid (blkid_probe pr, const unsigned char *uuid)
{
  return blkid_probe_set_uuid_as (pr, uuid, "UUID");
}

static int
blkid_probe_set_label (blkid_probe pr, const unsigned char *label, size_t len)
{
  if (label[0])
    printf ("LABEL=%.*s\n", (int) len, label);
  return 0;
}

static int
blkid_probe_set_magic (blkid_probe pr, uint64_t off, size_t len,
                       const unsigned char *magic)
{
  printf ("at %ju: %.*s\n", (uintmax_t) off, (int) len, magic);
  return 0;
}

#include <gpuraid.c>

int
main (int argc, char **argv)
{
  struct probe pr = { .fd = argc == 2 ? open (argv[1], O_RDONLY) : -1 };
  struct stat st;

  if (pr.fd == -1 || fstat (pr.fd, &st) == -1) {
    perror ("libblkid-stub");
    return 2;
  }
  pr.size = st.st_size;
  pr.mode = st.st_mode;
  if (pr.size < gpuraid_idinfo.minsz || gpuraid_idinfo.probefunc (&pr, NULL))
    return 1;
  printf ("TYPE=%s\n", gpuraid_idinfo.name);
  if (gpuraid_idinfo.usage == BLKID_USAGE_RAID)
    printf ("USAGE=raid\n");
  return 0;
}
