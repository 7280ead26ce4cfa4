/* Looks up what the loaded objects define, without the loader: dlsym() and dlopen() allocate, and an exception may be
 * thrown because there is no memory left. */
#define _GNU_SOURCE
#include "parts.h"

#include <link.h>

struct tables { /* of one object */
    const char *base;
    const ElfW(Sym) *symbols;
    const char *names;
    const uint32_t *hashes; /* DT_GNU_HASH */
};

/* The loader has relocated the addresses in the dynamic section, but not where that is read-only. */
static const void *address_in(const struct dl_phdr_info *info, ElfW(Addr) address) {
    return (const void *)(address < info->dlpi_addr ? info->dlpi_addr + address : address);
}

static bool read_tables(const struct dl_phdr_info *info, struct tables *tables) {
    *tables = (struct tables){.base = (const char *)info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_SYMTAB) tables->symbols = address_in(info, entry->d_un.d_ptr);
            if (entry->d_tag == DT_STRTAB) tables->names = address_in(info, entry->d_un.d_ptr);
            if (entry->d_tag == DT_GNU_HASH) tables->hashes = address_in(info, entry->d_un.d_ptr);
        }
    }
    return tables->symbols && tables->names && tables->hashes;
}

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++) hash = hash * 33 + (unsigned char)*name;
    return hash;
}

void *defined_in(const struct dl_phdr_info *info, const char *name) {
    struct tables tables;
    if (!read_tables(info, &tables)) return NULL;
    uint32_t buckets = tables.hashes[0], first = tables.hashes[1], bloom = tables.hashes[2], hash = hash_of(name);
    const uint32_t *bucket = tables.hashes + 4 + bloom * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    uint32_t index = buckets ? bucket[hash % buckets] : 0;
    if (index < first || !index) return NULL;
    for (;; index++) {
        uint32_t known = chain[index - first];
        const ElfW(Sym) *symbol = &tables.symbols[index];
        int type = ELF64_ST_TYPE(symbol->st_info);
        if ((known | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
            (type == STT_FUNC || type == STT_OBJECT) && !strcmp(tables.names + symbol->st_name, name))
            return (void *)(tables.base + symbol->st_value);
        if (known & 1) return NULL;
    }
}
