/* gpuraid: find the constants and the table of calls of the program.
 *
 * The dynamic section leads to the relocations; each names a function and the
 * entry that holds its address.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "old-nbdkit/program.h"

struct program {
  uintptr_t base;
  const ElfW (Phdr) *phdrs;
  unsigned nr_phdrs;
};

/* The program is the first. */
static int
take_first (struct dl_phdr_info *info, size_t len, void *opaque)
{
  struct program *p = opaque;

  *p = (struct program) {
    .base = info->dlpi_addr,
    .phdrs = info->dlpi_phdr,
    .nr_phdrs = info->dlpi_phnum,
  };
  return 1;
}

/* ---- the version ------------------------------------------------------ */

static const char *
find_version (const char *start, size_t len,
              bool (*is_wanted) (const char *version))
{
  const char *s = start, *end = start + len;

  while ((s = memmem (s, end - s, "\0001.", 3)) != NULL) {
    s++;
    if (memchr (s, 0, end - s) != NULL && is_wanted (s))
      return s;
  }
  return NULL;
}

const char *
program_version (bool (*is_wanted) (const char *version))
{
  struct program p = { 0 };
  const char *version = NULL;

  dl_iterate_phdr (take_first, &p);
  for (unsigned i = 0; i < p.nr_phdrs && version == NULL; i++) {
    const ElfW (Phdr) *h = &p.phdrs[i];

    /* Some linkers put constants and code into one. */
    if (h->p_type == PT_LOAD && (h->p_flags & (PF_R | PF_W)) == PF_R)
      version = find_version ((const char *) p.base + h->p_vaddr, h->p_memsz,
                              is_wanted);
  }
  return version;
}

/* ---- the table of calls ------------------------------------------------ */

#if defined __x86_64__ && defined __GLIBC__

struct relocations {
  const ElfW (Rela) *first;
  size_t len;                   /* bytes */
};

struct dynamic {
  struct relocations plt, other;
  const ElfW (Sym) *symbols;
  const char *names;
};

static const ElfW (Phdr) *
find_header (const struct program *p, unsigned type)
{
  for (unsigned i = 0; i < p->nr_phdrs; i++)
    if (p->phdrs[i].p_type == type)
      return &p->phdrs[i];
  return NULL;
}

static void
read_dynamic (const ElfW (Dyn) *d, struct dynamic *dyn)
{
  for (; d->d_tag != DT_NULL; d++) {
    const void *address = (const void *) d->d_un.d_ptr;

    switch (d->d_tag) {
    case DT_JMPREL: dyn->plt.first = address; break;
    case DT_PLTRELSZ: dyn->plt.len = d->d_un.d_val; break;
    case DT_RELA: dyn->other.first = address; break;
    case DT_RELASZ: dyn->other.len = d->d_un.d_val; break;
    case DT_SYMTAB: dyn->symbols = address; break;
    case DT_STRTAB: dyn->names = address; break;
    }
  }
}

/* Part of the table may be read-only since the program was linked. */
static int
write_entry (const struct program *p, uintptr_t entry,
             void (*function) (void))
{
  const ElfW (Phdr) *relro = find_header (p, PT_GNU_RELRO);
  size_t page_len = sysconf (_SC_PAGESIZE);
  void *page = (void *) (entry & -page_len);
  bool is_readonly = relro && entry - p->base - relro->p_vaddr < relro->p_memsz;

  if (is_readonly && mprotect (page, page_len, PROT_READ|PROT_WRITE) == -1)
    return -1;
  *(void (**) (void)) entry = function;
  if (is_readonly)
    mprotect (page, page_len, PROT_READ);
  return 0;
}

static int
replace_in (const struct program *p, const struct dynamic *dyn,
            const struct relocations *r, const char *name,
            void (*function) (void))
{
  int ret = -1;

  for (size_t i = 0; r->first && i < r->len / sizeof *r->first; i++) {
    const ElfW (Rela) *rela = &r->first[i];
    unsigned type = ELF64_R_TYPE (rela->r_info);
    const ElfW (Sym) *symbol = &dyn->symbols[ELF64_R_SYM (rela->r_info)];

    if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) &&
        strcmp (dyn->names + symbol->st_name, name) == 0) {
      if (write_entry (p, p->base + rela->r_offset, function) == -1)
        return -1;
      ret = 0;
    }
  }
  return ret;
}

int
program_replace_calls (const char *name, void (*function) (void))
{
  struct program p = { 0 };
  struct dynamic dyn = { 0 };
  const ElfW (Phdr) *header;
  int plt, other;

  dl_iterate_phdr (take_first, &p);
  header = find_header (&p, PT_DYNAMIC);
  if (header == NULL)
    return -1;
  read_dynamic ((const void *) (p.base + header->p_vaddr), &dyn);
  if (dyn.symbols == NULL || dyn.names == NULL)
    return -1;
  plt = replace_in (&p, &dyn, &dyn.plt, name, function);
  other = replace_in (&p, &dyn, &dyn.other, name, function);
  return plt == 0 || other == 0 ? 0 : -1;
}

#else

int
program_replace_calls (const char *name, void (*function) (void))
{
  return -1;
}

#endif
