/* fsx: compare one file of a mounted file system with a model in memory.
 *
 * Does random operations on a file and on an array of bytes, and compares.  All
 * randomness comes from the seed, with a generator of our own, so a run can be
 * repeated anywhere; with -b the operations before a number are left out, to
 * find which ones matter.  The expected content at the end can be kept (-k) and
 * compared later, for example after the file system was mounted again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum op {
  OP_READ, OP_WRITE, OP_APPEND, OP_TRUNCATE, OP_MAPREAD, OP_MAPWRITE,
  OP_PUNCH, OP_ZERO, OP_FSYNC, OP_REOPEN, OP_DROP,
  NR_OPS,
};

static const struct {
  const char *name;
  unsigned weight;
} ops[NR_OPS] = {
  [OP_READ]     = { "read", 25 },
  [OP_WRITE]    = { "write", 25 },
  [OP_APPEND]   = { "append", 6 },
  [OP_TRUNCATE] = { "truncate", 5 },
  [OP_MAPREAD]  = { "mapread", 12 },
  [OP_MAPWRITE] = { "mapwrite", 12 },
  [OP_PUNCH]    = { "punch", 5 },
  [OP_ZERO]     = { "zero", 3 },
  [OP_FSYNC]    = { "fsync", 2 },
  [OP_REOPEN]   = { "reopen", 2 },
  [OP_DROP]     = { "drop", 3 },        /* fsync, then out of the page cache */
};

#define HISTORY 64              /* operations told of at a mismatch */

struct done {
  uint64_t no;
  enum op op;
  size_t off, len, size;        /* size: of the file, after it */
};

static const char *path;
static int fd = -1;
static uint8_t *model;          /* max_len bytes; zeroes beyond size */
static uint8_t *scratch;        /* max_len bytes */
static size_t size;             /* of the file */
static size_t max_len = 1 << 20;
static size_t max_op = 64 << 10;
static uint64_t seed, rng_state;
static bool verbose;
static bool unsupported[NR_OPS];
static struct done history[HISTORY];
static uint64_t nr_done;

/* splitmix64 */
static uint64_t
rng (void)
{
  uint64_t z = rng_state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static size_t
below (size_t n)
{
  return n ? rng () % n : 0;
}

static void
tell_history (void)
{
  uint64_t i = nr_done > HISTORY ? nr_done - HISTORY : 0;

  fprintf (stderr, "fsx: seed %" PRIu64 ", the last operations:\n", seed);
  for (; i < nr_done; ++i) {
    const struct done *d = &history[i % HISTORY];

    fprintf (stderr, "%8" PRIu64 " %-8s %#zx .. %#zx, size %#zx\n",
             d->no, ops[d->op].name, d->off, d->off + d->len, d->size);
  }
}

__attribute__ ((noreturn))
static void
die (const char *what)
{
  fprintf (stderr, "fsx: %s: %s: %m\n", path, what);
  tell_history ();
  exit (1);
}

/* Is got what the model has at off? */
static void
compare (const uint8_t *got, size_t off, size_t len, const char *how)
{
  size_t i, nr = 0, first = 0;

  if (memcmp (got, model + off, len) == 0)
    return;
  for (i = 0; i < len; ++i)
    if (got[i] != model[off + i] && nr++ == 0)
      first = i;
  fprintf (stderr,
           "fsx: %s: %s %#zx .. %#zx: %zu bytes differ, the first at %#zx: "
           "%#x instead of %#x\n", path, how, off, off + len, nr, off + first,
           got[first], model[off + first]);
  tell_history ();
  exit (1);
}

static void
open_file (int flags)
{
  fd = open (path, O_RDWR|O_CLOEXEC|flags, 0600);
  if (fd == -1)
    die ("open");
}

static void
check_size (void)
{
  off_t end = lseek (fd, 0, SEEK_END);

  if (end == -1)
    die ("lseek");
  if ((size_t) end != size) {
    fprintf (stderr, "fsx: %s: size %#jx instead of %#zx\n", path,
             (intmax_t) end, size);
    tell_history ();
    exit (1);
  }
}

static void
set_size (size_t new_size)
{
  if (new_size < size)
    memset (model + new_size, 0, size - new_size);
  size = new_size;
}

static void
do_read (size_t off, size_t len)
{
  size_t n = 0;

  while (n < len) {
    ssize_t r = pread (fd, scratch + n, len - n, off + n);

    if (r == -1)
      die ("pread");
    if (r == 0) {
      errno = ENODATA;
      die ("pread: end of file");
    }
    n += r;
  }
  compare (scratch, off, len, "read");
}

static void
fill (uint8_t *buf, size_t len)
{
  size_t i;
  uint64_t v = 0;

  for (i = 0; i < len; ++i) {
    if (i % 8 == 0)
      v = rng ();
    buf[i] = v >> (i % 8 * 8);
  }
}

static void
do_write (size_t off, size_t len)
{
  size_t n = 0;

  fill (model + off, len);
  if (off + len > size)
    size = off + len;
  while (n < len) {
    ssize_t r = pwrite (fd, model + off + n, len - n, off + n);

    if (r == -1)
      die ("pwrite");
    n += r;
  }
}

/* A mapping of [off, off + len) of the file. */
static uint8_t *
map (size_t off, size_t len, int prot, void **base, size_t *base_len)
{
  size_t page = sysconf (_SC_PAGESIZE);
  size_t skip = off % page;

  *base_len = len + skip;
  *base = mmap (NULL, *base_len, prot, MAP_SHARED, fd, off - skip);
  if (*base == MAP_FAILED)
    die ("mmap");
  return (uint8_t *) *base + skip;
}

static void
do_mapread (size_t off, size_t len)
{
  void *base;
  size_t base_len;
  const uint8_t *p = map (off, len, PROT_READ, &base, &base_len);

  compare (p, off, len, "mapread");
  if (munmap (base, base_len) == -1)
    die ("munmap");
}

static void
do_mapwrite (size_t off, size_t len, bool sync)
{
  void *base;
  size_t base_len;
  uint8_t *p;

  if (off + len > size) {
    if (ftruncate (fd, off + len) == -1)
      die ("ftruncate");
    size = off + len;
  }
  p = map (off, len, PROT_READ|PROT_WRITE, &base, &base_len);
  fill (model + off, len);
  memcpy (p, model + off, len);
  if (sync && msync (base, base_len, MS_SYNC) == -1)
    die ("msync");
  if (munmap (base, base_len) == -1)
    die ("munmap");
}

static void
do_fallocate (enum op op, size_t off, size_t len)
{
  int mode = op == OP_PUNCH ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE;

  if (fallocate (fd, mode|FALLOC_FL_KEEP_SIZE, off, len) == -1) {
    if (errno != EOPNOTSUPP)
      die ("fallocate");
    fprintf (stderr, "fsx: %s: no %s here\n", path, ops[op].name);
    unsupported[op] = true;
    return;
  }
  memset (model + off, 0, len);
}

static void
do_drop (void)
{
  if (fsync (fd) == -1)
    die ("fsync");
  errno = posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
  if (errno)
    die ("posix_fadvise");
}

static void
do_reopen (void)
{
  if (close (fd) == -1)
    die ("close");
  open_file (0);
}

static enum op
choose (void)
{
  unsigned i, sum = 0, r;

  for (i = 0; i < NR_OPS; ++i)
    sum += ops[i].weight;
  r = below (sum);
  for (i = 0; r >= ops[i].weight; ++i)
    r -= ops[i].weight;
  return i;
}

/* Where, and how much: off + len is at most max_len, and at most size
 * for the operations that stay inside the file.
 */
static void
choose_range (enum op op, size_t *off, size_t *len)
{
  bool inside = op == OP_READ || op == OP_MAPREAD ||
    op == OP_PUNCH || op == OP_ZERO;
  size_t end = inside ? size : max_len;

  *off = op == OP_APPEND ? size : below (end);
  *len = below (max_op) + 1;
  if (below (4) == 0)           /* as a data base would */
    *off -= *off % 4096, *len = (*len + 4095) & ~(size_t) 4095;
  if (*off > end)
    *off = end;
  if (*len > end - *off)
    *len = end - *off;
}

static void
do_one (uint64_t no, uint64_t first)
{
  struct done *d;
  enum op op = choose ();
  size_t off, len, new_size;
  bool flag;

  choose_range (op, &off, &len);
  new_size = below (max_len + 1);
  flag = below (4) == 0;
  if (no < first || unsupported[op])
    return;
  if (len == 0 && op != OP_TRUNCATE && op < OP_FSYNC)
    return;
  if (verbose)
    printf ("%8" PRIu64 " %-8s %#zx .. %#zx\n", no, ops[op].name, off,
            off + len);
  d = &history[nr_done++ % HISTORY];
  *d = (struct done) { .no = no, .op = op, .off = off, .len = len,
                       .size = size };
  if (op == OP_TRUNCATE)
    d->off = new_size, d->len = 0;
  switch (op) {
  case OP_READ:     do_read (off, len); break;
  case OP_WRITE:
  case OP_APPEND:   do_write (off, len); break;
  case OP_TRUNCATE:
    if (ftruncate (fd, new_size) == -1)
      die ("ftruncate");
    set_size (new_size);
    break;
  case OP_MAPREAD:  do_mapread (off, len); break;
  case OP_MAPWRITE: do_mapwrite (off, len, flag); break;
  case OP_PUNCH:
  case OP_ZERO:     do_fallocate (op, off, len); break;
  case OP_FSYNC:
    if ((flag ? fdatasync (fd) : fsync (fd)) == -1)
      die ("fsync");
    break;
  case OP_REOPEN:   do_reopen (); break;
  case OP_DROP:     do_drop (); break;
  case NR_OPS:      abort ();
  }
  d->size = size;
  check_size ();
}

static void
keep_model (const char *keep)
{
  FILE *fp = fopen (keep, "w");

  if (fp == NULL || fwrite (model, 1, size, fp) != size || fclose (fp) != 0) {
    fprintf (stderr, "fsx: %s: %m\n", keep);
    exit (1);
  }
}

static uint64_t
number (const char *s, const char *what)
{
  char *end;
  uint64_t v;

  errno = 0;
  v = strtoull (s, &end, 0);
  if (errno || end == s || *end) {
    fprintf (stderr, "fsx: %s: not a number: %s\n", what, s);
    exit (2);
  }
  return v;
}

__attribute__ ((noreturn))
static void
usage (void)
{
  fprintf (stderr,
           "usage: fsx [-v] [-s SEED] [-n OPERATIONS] [-t SECONDS]\n"
           "           [-l MAX-FILE-LEN] [-o MAX-OP-LEN] [-b FIRST-OP]\n"
           "           [-k FILE-FOR-THE-MODEL] FILE\n");
  exit (2);
}

int
main (int argc, char *argv[])
{
  uint64_t nr = 1000, first = 0, i, seconds = 0;
  const char *keep = NULL;
  time_t end;
  int c;

  seed = (uint64_t) time (NULL) << 20 ^ (uint64_t) getpid ();
  while ((c = getopt (argc, argv, "vs:n:t:l:o:b:k:")) != -1)
    switch (c) {
    case 'v': verbose = true; break;
    case 's': seed = number (optarg, "-s"); break;
    case 'n': nr = number (optarg, "-n"); break;
    case 't': seconds = number (optarg, "-t"); break;
    case 'l': max_len = number (optarg, "-l"); break;
    case 'o': max_op = number (optarg, "-o"); break;
    case 'b': first = number (optarg, "-b"); break;
    case 'k': keep = optarg; break;
    default: usage ();
    }
  if (optind != argc - 1 || max_len == 0 || max_op == 0)
    usage ();
  path = argv[optind];
  model = calloc (1, max_len);
  scratch = malloc (max_len);
  if (model == NULL || scratch == NULL)
    die ("malloc");
  printf ("fsx: %s: seed %" PRIu64 "\n", path, seed);
  open_file (O_CREAT|O_TRUNC);
  end = time (NULL) + seconds;
  for (i = 0; i < nr && (seconds == 0 || time (NULL) < end); ++i) {
    /* Each operation starts from a state of its own, so that one that is
     * left out changes none of those that follow.
     */
    rng_state = seed + i * UINT64_C (0xd1342543de82ef95);
    do_one (i, first);
  }
  do_drop ();
  if (size > 0)
    do_read (0, size);
  if (keep)
    keep_model (keep);
  if (close (fd) == -1)
    die ("close");
  free (model);
  free (scratch);
  printf ("fsx: %s: %" PRIu64 " operations, all right\n", path, nr_done);
  return 0;
}
