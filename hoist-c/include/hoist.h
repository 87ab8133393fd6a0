/*
 * hoist: machine code into memory, without a linker or a dynamic loader.
 * Version 0.1. Licence: MIT OR Apache-2.0, at your choice.
 *
 *     hoist_module *module = NULL;
 *     hoist_error *error = NULL;
 *     if (hoist_load_file("plugin.o", &module, &error) != HOIST_STATUS_OK) {
 *         fprintf(stderr, "%s\n", hoist_error_message(error));
 *         hoist_error_free(error);
 *         return 1;
 *     }
 *     hoist_function function = NULL;
 *     if (hoist_module_function(module, "twice", &function, NULL) == HOIST_STATUS_OK) {
 *         printf("%d\n", ((int (*)(int))function)(21));
 *     }
 *     hoist_module_free(module);
 *
 * What holds for all functions:
 *
 * - Errors. A function that can fail returns a hoist_status, HOIST_STATUS_OK being 0, and takes a place
 *   for an error as its last argument. The place may be NULL. Else it holds NULL after success and a new
 *   error after failure, which the caller frees; what it held before is overwritten, not freed. The
 *   statuses that a function is documented to return are said without HOIST_STATUS_; any may return
 *   INVALID_ARGUMENT and INTERNAL besides.
 * - Results. They are written to places. A place must not be NULL unless the function says so. After
 *   failure it holds NULL, 0, or a row of zeros.
 * - NULL and lengths. NULL for a handle, a place or text is answered by INVALID_ARGUMENT, and does no
 *   harm. NULL for bytes is in order if their length is 0.
 * - Ownership. What a function with `new`, `open`, `parse`, `load`, `link` or `unpack` in its name makes
 *   is the caller's, to be freed once by the `free` of its type. Frees take NULL. Bytes and text that are
 *   given to a function are copied, or not needed any more when it returns. Pointers that a function
 *   gives belong to a handle, and are good as long as that handle.
 * - Text ends in NUL and is UTF-8 where it goes in (paths may be any bytes); names that come out of files
 *   may be any bytes.
 * - Threads. There is no state but that of handles. Different handles can be used by different threads
 *   at once; what one handle allows is said for each function.
 * - Code. Loading runs no code of the objects. Who calls functions, or has constructors run, guarantees
 *   what they do, and for the types that pointers are cast to.
 */


#ifndef HOIST_H
#define HOIST_H

/* Made of hoist-c/src by cbindgen: `HOIST_C_WRITE=1 cargo test -p hoist-c --test header`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The major part of the version of the header.
 */
#define HOIST_VERSION_MAJOR 0

/**
 * The minor part of the version of the header. Programs built with a header run with every library of the same major and minor part.
 */
#define HOIST_VERSION_MINOR 1

/**
 * `hoist_error_info.fields`: `object` is known.
 */
#define HOIST_ERROR_HAS_OBJECT 1

/**
 * `hoist_error_info.fields`: `section_index` is known.
 */
#define HOIST_ERROR_HAS_SECTION_INDEX 2

/**
 * `hoist_error_info.fields`: `offset` is known.
 */
#define HOIST_ERROR_HAS_OFFSET 4

/**
 * `hoist_error_info.fields`: `relocation_type` is known.
 */
#define HOIST_ERROR_HAS_RELOCATION_TYPE 8

/**
 * `hoist_error_info.fields`: `symbol_index` is known.
 */
#define HOIST_ERROR_HAS_SYMBOL_INDEX 16

/**
 * `hoist_error_info.fields`: `value` is known.
 */
#define HOIST_ERROR_HAS_VALUE 32

/**
 * `hoist_error_info.fields`: `minimum` and `maximum` are known.
 */
#define HOIST_ERROR_HAS_LIMITS 64

/**
 * `hoist_error_info.fields`: `os_error` is known.
 */
#define HOIST_ERROR_HAS_OS_ERROR 128

/**
 * `hoist_definition.kind`: nothing but the address is known.
 */
#define HOIST_DEFINITION_UNKNOWN 0

/**
 * `hoist_definition.kind`: a function. Code that does not reach it gets a stub, even where its address is taken.
 */
#define HOIST_DEFINITION_FUNCTION 1

/**
 * `hoist_link`: leaves instructions as compilers wrote them, even where shorter ways are known.
 */
#define HOIST_LINK_NO_RELAX 1

/**
 * `hoist_link`: takes symbols that nobody defines for 0, instead of refusing them.
 */
#define HOIST_LINK_ALLOW_UNDEFINED 2

/**
 * The symbol table of a file (`.symtab`).
 */
#define HOIST_SYMBOL_TABLE 0

/**
 * The symbols for dynamic linking (`.dynsym`).
 */
#define HOIST_DYNAMIC_SYMBOL_TABLE 1

/**
 * `hoist_file_symbol_row.definition`: another file has it.
 */
#define HOIST_SYMBOL_UNDEFINED 0

/**
 * `hoist_file_symbol_row.definition`: it is in section `section`.
 */
#define HOIST_SYMBOL_IN_SECTION 1

/**
 * `hoist_file_symbol_row.definition`: its value is what it is worth, wherever the file is (`SHN_ABS`).
 */
#define HOIST_SYMBOL_ABSOLUTE 2

/**
 * `hoist_file_symbol_row.definition`: room that linkers give it (`SHN_COMMON`); `value` is its alignment.
 */
#define HOIST_SYMBOL_COMMON 3

/**
 * `hoist_file_symbol_row.definition`: a number of the machine or the system, in `section`.
 */
#define HOIST_SYMBOL_RESERVED 4

/**
 * A number that the cubin does not say.
 */
#define HOIST_NOT_RECORDED 4294967295

/**
 * `hoist_cubin_kernel_row.stack`: the cubin does not say.
 */
#define HOIST_STACK_NOT_RECORDED 18446744073709551615ull

/**
 * `hoist_cubin_kernel_row.stack`: recursion or calls through pointers, so that no bound can be told.
 */
#define HOIST_STACK_UNBOUNDED 18446744073709551614ull

/**
 * `hoist_fatbin_replace`: takes code for another architecture, or of another kind, than it takes the place of.
 */
#define HOIST_FATBIN_ANY_CODE 1

/**
 * `hoist_device_code_load_...`: hoist puts the code into the memory of the device, instead of the driver. It must be a linked cubin.
 */
#define HOIST_DEVICE_CODE_OWN_LOADER 1

/**
 * `hoist_launch.flags`: waits until the kernel is done.
 */
#define HOIST_LAUNCH_WAIT 1

/**
 * `hoist_launch.flags`: all blocks run at the same time, so that they can wait for each other.
 */
#define HOIST_LAUNCH_COOPERATIVE 2

/**
 * What a function says: `HOIST_STATUS_OK`, or the kind of an error.
 */
enum hoist_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It did what it was to do.
     */
    HOIST_STATUS_OK = 0,
    /**
     * An argument is NULL, has a wrong length, or is no value of its kind. Nothing was done.
     */
    HOIST_STATUS_INVALID_ARGUMENT = 1,
    /**
     * There is no row of this number. Fields: `value`, the number; `maximum`, the last there is, if there is one.
     */
    HOIST_STATUS_OUT_OF_RANGE = 2,
    /**
     * Another call is using a handle that is for one call at a time.
     */
    HOIST_STATUS_BUSY = 3,
    /**
     * A fault of this library. The handles that were used can be freed.
     */
    HOIST_STATUS_INTERNAL = 4,
    /**
     * A file could not be read. Fields: `file`, `os_error`.
     */
    HOIST_STATUS_FILE = 5,
    /**
     * A file, or a part of it, is damaged or not what it should be. Fields: `file`, `offset`.
     */
    HOIST_STATUS_BAD_FILE = 6,
    /**
     * The file is in order, and says something that is not supported.
     */
    HOIST_STATUS_UNSUPPORTED = 7,
    /**
     * Nobody defines a symbol that is referred to. Fields: `symbol`, `file`, `section`, `relocation`, `offset`.
     */
    HOIST_STATUS_UNDEFINED_SYMBOL = 8,
    /**
     * A relocation could not be applied. Fields: `file`, `section`, `relocation`, `offset`, `symbol`, and for values out of reach
     * `value`, `minimum`, `maximum`.
     */
    HOIST_STATUS_RELOCATION = 9,
    /**
     * Objects do not go together, or cannot be laid out.
     */
    HOIST_STATUS_LAYOUT = 10,
    /**
     * The system gave no memory, or not the permissions.
     */
    HOIST_STATUS_MEMORY = 11,
    /**
     * Something is larger than its limit. Fields: `value`, `maximum`.
     */
    HOIST_STATUS_TOO_LARGE = 12,
    /**
     * There is no symbol, section, kernel ... of this name. Field: `symbol`.
     */
    HOIST_STATUS_NOT_FOUND = 13,
    /**
     * The symbol is not a function. Field: `symbol`.
     */
    HOIST_STATUS_NOT_FUNCTION = 14,
    /**
     * Constructors were not run yet: `hoist_module_initialize`.
     */
    HOIST_STATUS_NOT_INITIALIZED = 15,
    /**
     * The module was not loaded as replaceable, or has no such function. Field: `symbol`.
     */
    HOIST_STATUS_NOT_REPLACEABLE = 16,
    /**
     * There is no room for thread-local variables.
     */
    HOIST_STATUS_THREAD_LOCAL = 17,
    /**
     * A library of the system could not be opened, or one that a library needs.
     */
    HOIST_STATUS_LIBRARY = 18,
    /**
     * No image fits the device.
     */
    HOIST_STATUS_NO_FIT = 19,
    /**
     * Anything else.
     */
    HOIST_STATUS_OTHER = 20,
    /**
     * There is no such GPU: no driver, one that is too old, no GPU, or not so many.
     */
    HOIST_STATUS_NO_DEVICE = 21,
    /**
     * A GPU or its driver says no, or a kernel has failed. Fields, of a function of the driver: `symbol`, its name; `value`, what it
     * returned.
     */
    HOIST_STATUS_DEVICE = 22,
    /**
     * The kernel or the GPU cannot be launched so. Nothing was launched. Fields, of a number: `value`, `minimum`, `maximum`.
     */
    HOIST_STATUS_LAUNCH = 23,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum hoist_status hoist_status;
#else
typedef uint32_t hoist_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * An archive (`.a`), to look at. Free it with `hoist_archive_free`.
 */
typedef struct hoist_archive hoist_archive;

/**
 * Bytes that a function has made. Free them with `hoist_buffer_free`.
 */
typedef struct hoist_buffer hoist_buffer;

/**
 * A cubin, to look at. Free it with `hoist_cubin_free`.
 */
typedef struct hoist_cubin hoist_cubin;

/**
 * A GPU. Free it with `hoist_device_free`.
 */
typedef struct hoist_device hoist_device;

/**
 * Code on a GPU. Free it with `hoist_device_code_free`.
 */
typedef struct hoist_device_code hoist_device_code;

/**
 * Memory of a GPU. Free it with `hoist_device_memory_free`.
 */
typedef struct hoist_device_memory hoist_device_memory;

/**
 * What was found wrong. Free it with `hoist_error_free`.
 */
typedef struct hoist_error hoist_error;

/**
 * Device code of a file, to look at. Free it with `hoist_fatbin_free`.
 */
typedef struct hoist_fatbin hoist_fatbin;

/**
 * An ELF file, to look at. Free it with `hoist_file_free`.
 */
typedef struct hoist_file hoist_file;

/**
 * Objects relocated for an address, as bytes. Free it with `hoist_image_free`.
 */
typedef struct hoist_image hoist_image;

/**
 * A kernel that can be launched. Free it with `hoist_kernel_free`.
 */
typedef struct hoist_kernel hoist_kernel;

/**
 * A shared library in memory. Free it with `hoist_library_free`.
 */
typedef struct hoist_library hoist_library;

/**
 * How shared libraries are loaded. Free it with `hoist_library_loader_free`.
 */
typedef struct hoist_library_loader hoist_library_loader;

/**
 * How objects are loaded: which memory, and who is told. Free it with `hoist_loader_free`.
 */
typedef struct hoist_loader hoist_loader;

/**
 * Objects in memory. Free it with `hoist_module_free`.
 */
typedef struct hoist_module hoist_module;

/**
 * Objects and archives, in the order in which they are linked. Free them with `hoist_objects_free`.
 */
typedef struct hoist_objects hoist_objects;

/**
 * A function that stands for another one until this is freed with `hoist_replacement_free`.
 */
typedef struct hoist_replacement hoist_replacement;

/**
 * Sources of symbols, in the order in which they are asked. Free them with `hoist_symbols_free`.
 */
typedef struct hoist_symbols hoist_symbols;

/**
 * All that is known of an error. Pointers are good until the error is freed, and NULL where nothing is known; numbers are known where
 * `fields` says so, and 0 elsewhere.
 */
typedef struct hoist_error_info {
    /**
     * What kind of error it is.
     */
    hoist_status kind;
    /**
     * `HOIST_ERROR_HAS_...`, added up.
     */
    uint32_t fields;
    /**
     * One line for people. Never NULL.
     */
    const char *message;
    /**
     * The file or object, as it was called when it was given; what of a path is not UTF-8 is U+FFFD.
     */
    const char *file;
    /**
     * The name of the section.
     */
    const char *section;
    /**
     * The name of the symbol.
     */
    const char *symbol;
    /**
     * The name of the relocation's type (`R_X86_64_PC32`).
     */
    const char *relocation;
    /**
     * The object, by its number in the load or link.
     */
    size_t object;
    /**
     * The section's index in the object.
     */
    uint32_t section_index;
    /**
     * The relocation's type, as the file has it.
     */
    uint32_t relocation_type;
    /**
     * The symbol's index in the object.
     */
    uint32_t symbol_index;
    /**
     * `errno`.
     */
    int os_error;
    /**
     * Where: with a section, bytes from its start; else bytes from the start of the file.
     */
    uint64_t offset;
    /**
     * The value that did not fit. Signed values are modulo 2^64.
     */
    uint64_t value;
    /**
     * The least that would have fitted.
     */
    int64_t minimum;
    /**
     * The most that would have fitted.
     */
    uint64_t maximum;
} hoist_error_info;

/**
 * Where a symbol is.
 */
typedef struct hoist_definition {
    /**
     * Its address: of this process, or, if an image is linked for elsewhere, of there.
     */
    uint64_t address;
    /**
     * `HOIST_DEFINITION_...`
     */
    uint32_t kind;
    /**
     * 0.
     */
    uint32_t reserved;
} hoist_definition;

/**
 * Asked for the symbol `name`: writes where it is to `definition`, which holds zeros, and returns `true`; or returns `false`. It is
 * called during loads and links that were given the source, on their thread, possibly several times for one name. It must not use
 * the same list of sources (that is answered `BUSY`), must not throw, and must not jump out (`longjmp`).
 */
typedef bool (*hoist_symbol_callback)(void *context,
                                      const char *name,
                                      struct hoist_definition *definition);

/**
 * A function of what was loaded. Pointers are good during the call that shows it.
 */
typedef struct hoist_observed_function_row {
    /**
     * Its name; of a stub, that of the function it leads to.
     */
    const char *name;
    /**
     * Its address, good as long as the load.
     */
    void *address;
    /**
     * Its size in bytes.
     */
    uint64_t size;
    /**
     * The object that has it, by its number; 0 of a library.
     */
    size_t object;
    /**
     * Whether it is a stub that the loader has made.
     */
    bool is_stub;
} hoist_observed_function_row;

/**
 * Tells of a load that is in place, and of which no code has run: the name of the library, empty of a module, and its functions by rising
 * address. What it writes to `*token`, which holds NULL, is what `unloaded` gets. `false` refuses the load, which fails with `OTHER`.
 */
typedef bool (*hoist_loaded_callback)(void *context,
                                      const char *name,
                                      const struct hoist_observed_function_row *functions,
                                      size_t count,
                                      void **token);

/**
 * Tells that a load goes, or fails after it was told: its code has run for the last time, and is still mapped.
 */
typedef void (*hoist_unloaded_callback)(void *context, void *token);

/**
 * Who is told of loads. Both functions are called on the thread that loads, or frees what was loaded; they must not throw, and must not
 * jump out (`longjmp`).
 */
typedef struct hoist_observer {
    /**
     * Passed to both; good as long as the loader and all that was loaded with it.
     */
    void *context;
    /**
     * Must not be NULL.
     */
    hoist_loaded_callback loaded;
    /**
     * May be NULL.
     */
    hoist_unloaded_callback unloaded;
} hoist_observer;

/**
 * Any function: to be cast to the type that it has.
 */
typedef void (*hoist_function)(void);

/**
 * A symbol of a module. Pointers are good as long as the module's handle.
 */
typedef struct hoist_module_symbol_row {
    /**
     * Its name, mangled if it was so. Local symbols may have names that others have, too.
     */
    const char *name;
    /**
     * Its address.
     */
    void *address;
    /**
     * Its size in bytes, 0 if the object does not tell.
     */
    uint64_t size;
    /**
     * The object that defines it: by number, members of archives behind the objects that were given.
     */
    size_t object;
    /**
     * The index of its section in the object; 0 of common symbols.
     */
    uint32_t section;
    /**
     * What it is: `STT_FUNC` (2), `STT_OBJECT` (1) ...
     */
    uint8_t kind;
    /**
     * Who sees it: `STB_LOCAL` (0), `STB_GLOBAL` (1), `STB_WEAK` (2).
     */
    uint8_t binding;
} hoist_module_symbol_row;

/**
 * A section of one of a module's objects. Pointers are good as long as the module's handle.
 */
typedef struct hoist_module_section_row {
    /**
     * Its name.
     */
    const char *name;
    /**
     * Where it is in memory, relocated; NULL if it is not loaded.
     */
    void *address;
    /**
     * Its size in bytes.
     */
    uint64_t size;
    /**
     * Its bytes as the object has them, without relocation; NULL of zeros (`SHT_NOBITS`).
     */
    const void *data;
    /**
     * How many bytes `data` has.
     */
    size_t data_size;
    /**
     * `SHF_WRITE` (1), `SHF_ALLOC` (2), `SHF_EXECINSTR` (4) ...
     */
    uint64_t flags;
    /**
     * The object, by its number.
     */
    size_t object;
    /**
     * Its index in the object.
     */
    uint32_t index;
} hoist_module_section_row;

/**
 * Memory of a module that has one permission.
 */
typedef struct hoist_module_segment_row {
    /**
     * Where it is.
     */
    void *address;
    /**
     * Its size in bytes.
     */
    uint64_t size;
    /**
     * `PF_X` (1), `PF_W` (2), `PF_R` (4).
     */
    uint32_t flags;
    /**
     * 0.
     */
    uint32_t reserved;
} hoist_module_segment_row;

/**
 * How many bytes of memory a module takes.
 */
typedef struct hoist_module_sizes_row {
    /**
     * Code, stubs included.
     */
    uint64_t code;
    /**
     * Data that are not written once they are relocated.
     */
    uint64_t read_only;
    /**
     * Other data.
     */
    uint64_t writable;
    /**
     * A thread's copy of thread-local variables.
     */
    uint64_t thread_variables;
} hoist_module_sizes_row;

/**
 * A library that another one needs: either `library`, which was loaded before and stays as long as somebody uses it, or, where that is
 * NULL, `size` bytes at `data`, which are copied.
 */
typedef struct hoist_needed_library {
    /**
     * A library, or NULL.
     */
    const struct hoist_library *library;
    /**
     * The bytes of a file.
     */
    const void *data;
    /**
     * How many.
     */
    size_t size;
} hoist_needed_library;

/**
 * Asked for a library that is needed, by the name that says so (`DT_NEEDED`): writes it to `needed`, which holds NULL and 0, and returns
 * `true`; or returns `false`, and the dynamic loader is asked. It is called during loads, on their thread, once for each name. It must not
 * throw, and must not jump out (`longjmp`).
 */
typedef bool (*hoist_needed_callback)(void *context,
                                      const char *name,
                                      struct hoist_needed_library *needed);

/**
 * A symbol of an image. Pointers are good as long as the image.
 */
typedef struct hoist_image_symbol_row {
    /**
     * Its name.
     */
    const char *name;
    /**
     * Its address, where the image will run.
     */
    uint64_t address;
    /**
     * Its size in bytes, 0 if the object does not tell.
     */
    uint64_t size;
    /**
     * The object that has it, by its number in the link.
     */
    size_t object;
    /**
     * What it is: `STT_FUNC` (2), `STT_OBJECT` (1) ...
     */
    uint8_t kind;
    /**
     * Who sees it: `STB_LOCAL` (0), `STB_GLOBAL` (1), `STB_WEAK` (2).
     */
    uint8_t binding;
} hoist_image_symbol_row;

/**
 * A part of an image with permissions of its own.
 */
typedef struct hoist_image_segment_row {
    /**
     * Its address, where the image will run.
     */
    uint64_t address;
    /**
     * Where it begins in the image's bytes.
     */
    uint64_t offset;
    /**
     * Its size in bytes.
     */
    uint64_t size;
    /**
     * `PF_X` (1), `PF_W` (2), `PF_R` (4), added up.
     */
    uint32_t flags;
} hoist_image_segment_row;

/**
 * The header of an ELF file.
 */
typedef struct hoist_file_info {
    /**
     * `ET_REL` (1), `ET_EXEC` (2), `ET_DYN` (3) ...
     */
    uint16_t kind;
    /**
     * `EM_X86_64` (62), `EM_AARCH64` (183), `EM_CUDA` (190) ...
     */
    uint16_t machine;
    /**
     * `e_flags`.
     */
    uint32_t flags;
    /**
     * Where a program starts.
     */
    uint64_t entry;
    /**
     * `EI_OSABI`.
     */
    uint8_t os_abi;
    /**
     * `EI_ABIVERSION`.
     */
    uint8_t abi_version;
    /**
     * Whether addresses have 64 bits.
     */
    bool is_64;
    /**
     * Whether numbers have the most significant byte first.
     */
    bool is_big_endian;
} hoist_file_info;

/**
 * A section header. Pointers are good as long as the file.
 */
typedef struct hoist_file_section_row {
    /**
     * Its name.
     */
    const char *name;
    /**
     * `SHT_PROGBITS` (1), `SHT_SYMTAB` (2), `SHT_RELA` (4), `SHT_NOBITS` (8) ...
     */
    uint32_t kind;
    /**
     * `sh_link`.
     */
    uint32_t link;
    /**
     * `sh_info`.
     */
    uint32_t info;
    /**
     * `SHF_WRITE` (1), `SHF_ALLOC` (2), `SHF_EXECINSTR` (4) ...
     */
    uint64_t flags;
    /**
     * Its address, if the file is linked.
     */
    uint64_t address;
    /**
     * Where its bytes are in the file.
     */
    uint64_t offset;
    /**
     * Its size in bytes.
     */
    uint64_t size;
    /**
     * Its alignment in bytes.
     */
    uint64_t alignment;
    /**
     * Size of an entry, of tables.
     */
    uint64_t entry_size;
} hoist_file_section_row;

/**
 * A program header.
 */
typedef struct hoist_file_segment_row {
    /**
     * `PT_LOAD` (1), `PT_DYNAMIC` (2) ...
     */
    uint32_t kind;
    /**
     * `PF_X` (1), `PF_W` (2), `PF_R` (4), added up.
     */
    uint32_t flags;
    /**
     * Where its bytes are in the file.
     */
    uint64_t offset;
    /**
     * Its address.
     */
    uint64_t address;
    /**
     * Its physical address.
     */
    uint64_t physical_address;
    /**
     * How many bytes of it the file has.
     */
    uint64_t file_size;
    /**
     * How many bytes it has in memory.
     */
    uint64_t memory_size;
    /**
     * Its alignment in bytes.
     */
    uint64_t alignment;
} hoist_file_segment_row;

/**
 * A symbol of a file. Pointers are good as long as the file.
 */
typedef struct hoist_file_symbol_row {
    /**
     * Its name, empty if it has none.
     */
    const char *name;
    /**
     * Its address, in relocatable files its offset in the section.
     */
    uint64_t value;
    /**
     * Its size in bytes.
     */
    uint64_t size;
    /**
     * `HOIST_SYMBOL_...`
     */
    uint32_t definition;
    /**
     * The number of its section, if it is in one.
     */
    uint32_t section;
    /**
     * `STT_NOTYPE` (0), `STT_OBJECT` (1), `STT_FUNC` (2), `STT_SECTION` (3), `STT_FILE` (4), `STT_TLS` (6) ...
     */
    uint8_t kind;
    /**
     * `STB_LOCAL` (0), `STB_GLOBAL` (1), `STB_WEAK` (2) ...
     */
    uint8_t binding;
    /**
     * `STV_DEFAULT` (0), `STV_INTERNAL` (1), `STV_HIDDEN` (2), `STV_PROTECTED` (3).
     */
    uint8_t visibility;
    /**
     * `st_other`.
     */
    uint8_t other;
} hoist_file_symbol_row;

/**
 * A relocation of a file. Pointers are good as long as the file.
 */
typedef struct hoist_file_relocation_row {
    /**
     * Where: in relocatable files an offset in the section that `sh_info` of the relocations' section names, else an address.
     */
    uint64_t offset;
    /**
     * What is added; 0 if the place holds it.
     */
    int64_t addend;
    /**
     * Whether the record has the addend (`RELA`), not the place (`REL`).
     */
    bool has_addend;
    /**
     * Its type, as the machine numbers them.
     */
    uint32_t kind;
    /**
     * The symbol's number in the table that `sh_link` of the relocations' section names; 0 if there is none.
     */
    uint32_t symbol;
    /**
     * The name of its type (`"R_X86_64_PC32"`), empty if it is not known.
     */
    const char *type_name;
    /**
     * The name of the symbol, or of the section that the symbol stands for; empty if there is none.
     */
    const char *symbol_name;
} hoist_file_relocation_row;

/**
 * What a cubin is for. Pointers are good as long as the cubin.
 */
typedef struct hoist_cubin_info {
    /**
     * The architecture (`"sm_90a"`), empty if the cubin does not say.
     */
    const char *architecture;
    /**
     * Its number (90), or `HOIST_NOT_RECORDED`.
     */
    uint32_t sm;
    /**
     * That of the PTX it was made of, or `HOIST_NOT_RECORDED`.
     */
    uint32_t virtual_sm;
    /**
     * The CUDA toolkit that made it, or `HOIST_NOT_RECORDED`.
     */
    uint32_t toolkit_major;
    /**
     * As above.
     */
    uint32_t toolkit_minor;
    /**
     * Whether addresses have 64 bits.
     */
    bool is_64;
    /**
     * Whether it is to be linked still.
     */
    bool is_relocatable;
} hoist_cubin_info;

/**
 * A kernel, and what it needs. Numbers that the cubin does not say are `HOIST_NOT_RECORDED`. Pointers are good as long as the cubin.
 */
typedef struct hoist_cubin_kernel_row {
    /**
     * Its name, mangled.
     */
    const char *name;
    /**
     * Size of its code in bytes.
     */
    uint64_t code_size;
    /**
     * Shared memory of a block in bytes, what launches add aside.
     */
    uint64_t shared;
    /**
     * Shared memory that the system takes of it, in bytes.
     */
    uint64_t reserved_shared;
    /**
     * Local memory of a thread in bytes.
     */
    uint64_t local;
    /**
     * Stack of a thread in bytes, functions that it calls included; or `HOIST_STACK_...`.
     */
    uint64_t stack;
    /**
     * How many parameters it has.
     */
    size_t parameter_count;
    /**
     * How many attributes it has.
     */
    size_t attribute_count;
    /**
     * Registers of a thread.
     */
    uint32_t registers;
    /**
     * The most that it may have (`--maxrregcount`).
     */
    uint32_t max_registers;
    /**
     * Barriers of a block.
     */
    uint32_t barriers;
    /**
     * Size of its own frame in bytes.
     */
    uint32_t frame_size;
    /**
     * Size of all parameters in bytes.
     */
    uint32_t parameter_size;
    /**
     * The most threads of a block, by x, y and z.
     */
    uint32_t max_threads[3];
    /**
     * The very numbers of threads that a block must have, by x, y and z.
     */
    uint32_t required_threads[3];
    /**
     * Blocks of a cluster, by x, y and z.
     */
    uint32_t cluster[3];
    /**
     * The most blocks of a cluster.
     */
    uint32_t max_cluster_rank;
    /**
     * How many textures it uses.
     */
    uint32_t textures;
    /**
     * How many surfaces it uses.
     */
    uint32_t surfaces;
    /**
     * How many samplers it uses.
     */
    uint32_t samplers;
    /**
     * The number of its section in the file.
     */
    uint32_t section;
    /**
     * The number of its symbol in the file.
     */
    uint32_t symbol;
} hoist_cubin_kernel_row;

/**
 * A parameter of a kernel.
 */
typedef struct hoist_cubin_parameter_row {
    /**
     * Which one it is, from 0 on.
     */
    uint32_t ordinal;
    /**
     * Where it begins among the parameters, in bytes.
     */
    uint32_t offset;
    /**
     * Its size in bytes.
     */
    uint32_t size;
    /**
     * Of pointers, the binary logarithm of the alignment that is promised for what they lead to.
     */
    uint32_t pointee_alignment;
    /**
     * The constant bank that it is in, or `HOIST_NOT_RECORDED`.
     */
    uint32_t bank;
} hoist_cubin_parameter_row;

/**
 * An attribute (`.nv.info.KERNEL`). Pointers are good as long as the cubin.
 */
typedef struct hoist_cubin_attribute_row {
    /**
     * Its name (`"EIATTR_REGCOUNT"`), empty if it is not known.
     */
    const char *name;
    /**
     * Where its record begins in the file.
     */
    uint64_t offset;
    /**
     * Its bytes, of format 4; else NULL.
     */
    const void *data;
    /**
     * How many they are.
     */
    size_t data_size;
    /**
     * Its number.
     */
    uint32_t number;
    /**
     * `EIFMT_NVAL` (1): nothing, `EIFMT_BVAL` (2): a byte, `EIFMT_HVAL` (3): two bytes, `EIFMT_SVAL` (4): bytes.
     */
    uint32_t format;
    /**
     * The value, of formats 2 and 3.
     */
    uint32_t value;
} hoist_cubin_attribute_row;

/**
 * How many blocks of a kernel fit a multiprocessor.
 */
typedef struct hoist_cubin_occupancy_row {
    /**
     * Blocks.
     */
    uint32_t blocks;
    /**
     * Warps of these blocks.
     */
    uint32_t warps;
    /**
     * Warps that a multiprocessor can have.
     */
    uint32_t of_warps;
    /**
     * What there is not enough of for more (`"registers"`). Never NULL; it is never freed.
     */
    const char *limiter;
} hoist_cubin_occupancy_row;

/**
 * An image in a region of device code. Pointers are good as long as the fatbin.
 */
typedef struct hoist_fatbin_entry_row {
    /**
     * What it is: `"elf"` (a cubin), `"ptx"`, `"nvvm"` ...
     */
    const char *kind_name;
    /**
     * The architecture, as tools write it (`"90a"`).
     */
    const char *architecture;
    /**
     * How it is compressed (`"zstd"`); empty if it is not.
     */
    const char *compression;
    /**
     * What the compiler called it, often the source's name; empty if it has none.
     */
    const char *identifier;
    /**
     * The member of an archive that it is in; empty outside of archives.
     */
    const char *member;
    /**
     * The section that it is in; empty outside of ELF files.
     */
    const char *section;
    /**
     * The number of its region.
     */
    size_t region;
    /**
     * Where it begins in the file.
     */
    uint64_t offset;
    /**
     * How many bytes it takes in the file, without its header.
     */
    uint64_t stored_size;
    /**
     * How many bytes it has when it is unpacked.
     */
    uint64_t unpacked_size;
    /**
     * Its flags, as the file has them.
     */
    uint64_t flags;
    /**
     * What it is, as the file has it: 1 PTX, 2 a cubin, 8 NVVM ...
     */
    uint32_t kind;
    /**
     * The number of its architecture (90).
     */
    uint32_t sm;
    /**
     * The version of the code's format, for PTX that of its ISA.
     */
    uint32_t code_major;
    /**
     * As above.
     */
    uint32_t code_minor;
} hoist_fatbin_entry_row;

/**
 * What a GPU is, and what it can do at most. Memory in bytes. Pointers are good as long as the device.
 */
typedef struct hoist_device_info {
    /**
     * What the maker calls it.
     */
    const char *name;
    /**
     * Its memory.
     */
    uint64_t memory;
    /**
     * Its UUID.
     */
    uint8_t uuid[16];
    /**
     * The number of its architecture: 90 for `sm_90`.
     */
    uint32_t sm;
    /**
     * The version of CUDA that the driver has.
     */
    uint32_t driver_major;
    /**
     * As above.
     */
    uint32_t driver_minor;
    /**
     * Multiprocessors.
     */
    uint32_t multiprocessors;
    /**
     * Threads of a warp.
     */
    uint32_t warp_size;
    /**
     * Blocks of a grid, by x, y and z.
     */
    uint32_t max_grid[3];
    /**
     * Threads of a block, by x, y and z.
     */
    uint32_t max_block[3];
    /**
     * Threads of a block.
     */
    uint32_t max_threads;
    /**
     * Registers of a block.
     */
    uint32_t max_registers;
    /**
     * Shared memory of a block, static and dynamic together.
     */
    uint32_t max_shared;
    /**
     * Level 2 cache.
     */
    uint32_t l2_cache;
    /**
     * PCI domain, bus and device.
     */
    uint32_t pci[3];
    /**
     * Whether blocks can form clusters.
     */
    bool has_clusters;
    /**
     * Whether all blocks of a grid can wait for each other.
     */
    bool has_cooperative_launches;
} hoist_device_info;

/**
 * How often a kernel runs, and what its blocks have.
 */
typedef struct hoist_launch {
    /**
     * Blocks, by x, y and z; 0 for y and z stands for 1.
     */
    uint32_t grid[3];
    /**
     * Threads of a block, by x, y and z; 0 for y and z stands for 1.
     */
    uint32_t block[3];
    /**
     * Blocks of a cluster, by x, y and z; zeros if there are no clusters, or those that the kernel says itself.
     */
    uint32_t cluster[3];
    /**
     * Bytes of shared memory of a block beside what the kernel declares.
     */
    uint32_t dynamic_shared;
    /**
     * `HOIST_LAUNCH_...`, added up.
     */
    uint32_t flags;
} hoist_launch;

/**
 * What a kernel is given for a parameter: an address of memory, or bytes.
 */
typedef struct hoist_kernel_argument {
    /**
     * Memory, whose address the parameter becomes; it is kept until the kernel is done. NULL if the parameter is bytes.
     */
    const struct hoist_device_memory *memory;
    /**
     * How many bytes behind the start of the memory that address is.
     */
    uint64_t offset;
    /**
     * The bytes of a number or structure, if `memory` is NULL.
     */
    const void *data;
    /**
     * How many bytes.
     */
    size_t size;
} hoist_kernel_argument;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library (`"0.1.0"`). Never NULL; it is never freed.
 *
 * Threads: any number at once.
 */
const char *hoist_version(void);

/**
 * The kind of an error; `HOIST_STATUS_OK` for NULL.
 *
 * Threads: any number at once.
 */
hoist_status hoist_error_kind(const struct hoist_error *error);

/**
 * One line for people: what is wrong, where, and why. Never NULL: of no error (NULL) it is empty. Good until the error is freed.
 *
 * Threads: any number at once.
 */
const char *hoist_error_message(const struct hoist_error *error);

/**
 * All that is known of an error, written to `info`: `false`, and nothing is written, if one of them is NULL.
 *
 * Threads: any number at once.
 */
bool hoist_error_get_info(const struct hoist_error *error,
                          struct hoist_error_info *info);

/**
 * Frees an error; NULL is none.
 *
 * Threads: nobody uses the error any more.
 */
void hoist_error_free(struct hoist_error *error);

/**
 * The name of a status (`"undefined symbol"`). Never NULL; it is never freed.
 *
 * Threads: any number at once.
 */
const char *hoist_status_name(uint32_t status);

/**
 * The first byte; NULL if there are none, or `buffer` is NULL. Good until the buffer is freed.
 *
 * Threads: any number at once.
 */
const void *hoist_buffer_data(const struct hoist_buffer *buffer);

/**
 * How many bytes there are; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_buffer_size(const struct hoist_buffer *buffer);

/**
 * Frees a buffer; NULL is none.
 *
 * Threads: nobody uses the buffer any more.
 */
void hoist_buffer_free(struct hoist_buffer *buffer);

/**
 * An empty list of objects. Never NULL.
 *
 * Threads: any number at once.
 */
struct hoist_objects *hoist_objects_new(void);

/**
 * Adds a file: a relocatable object, or an archive, thin ones included. Of archives, members are taken that define what is missing,
 * as linkers do, unless `hoist_objects_set_whole_archive` says otherwise. The file is read now. What is wrong with an object is
 * said when it is loaded or linked.
 *
 * Errors: `FILE`; for archives `BAD_FILE`; `BUSY`.
 * Threads: one call at a time for each list; another one is answered `BUSY`.
 */
hoist_status hoist_objects_add_file(struct hoist_objects *objects,
                                    const char *path,
                                    struct hoist_error **error);

/**
 * The same of `size` bytes in memory, which are copied. `label` is what errors call it; NULL stands for `"memory"`. Thin archives are
 * refused: their members are files.
 *
 * Errors: for archives `BAD_FILE`, `UNSUPPORTED`; `BUSY`.
 * Threads: as for `hoist_objects_add_file`.
 */
hoist_status hoist_objects_add_memory(struct hoist_objects *objects,
                                      const char *label,
                                      const void *data,
                                      size_t size,
                                      struct hoist_error **error);

/**
 * Adds an object like `hoist_objects_add_memory`, without those writable variables that `old` has under the same names: loaded with
 * `old` as its first source of symbols, it uses them, where they are and as they are. For code that was compiled anew and whose
 * functions replace those of `old`. `static`, constant and thread-local variables are its own.
 *
 * Errors: `BAD_FILE`; `LAYOUT` if a variable has another size than it had; `BUSY`.
 * Threads: as for `hoist_objects_add_file`.
 */
hoist_status hoist_objects_add_keeping_data(struct hoist_objects *objects,
                                            const char *label,
                                            const void *data,
                                            size_t size,
                                            const struct hoist_module *old,
                                            struct hoist_error **error);

/**
 * Whether all members of archives that are added from now on are taken (`--whole-archive` of linkers). They are not at first.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_objects_add_file`.
 */
hoist_status hoist_objects_set_whole_archive(struct hoist_objects *objects,
                                             bool is_whole,
                                             struct hoist_error **error);

/**
 * How many objects are loaded in any case: without archives whose members are taken as they are asked for.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_objects_add_file`.
 */
hoist_status hoist_objects_count(const struct hoist_objects *objects,
                                 size_t *count,
                                 struct hoist_error **error);

/**
 * Frees a list; NULL is none. What was loaded from it stays.
 *
 * Threads: nobody uses the list any more.
 */
void hoist_objects_free(struct hoist_objects *objects);

/**
 * An empty list: it defines nothing. Never NULL.
 *
 * Threads: any number at once.
 */
struct hoist_symbols *hoist_symbols_new(void);

/**
 * Adds what this process has: the program, as far as it shows its symbols (`-rdynamic`), the C library, the mathematical library,
 * and what was opened for all (`RTLD_GLOBAL`).
 *
 * Errors: `BUSY`.
 * Threads: one call at a time for each list; another one is answered `BUSY`.
 */
hoist_status hoist_symbols_add_process(struct hoist_symbols *symbols,
                                       struct hoist_error **error);

/**
 * Opens a library of the system as `dlopen` does - a path if the name has a slash, else a name to search for - and adds what this
 * process has and what the library has, in this order. Its constructors run. It is closed when neither the list nor a module needs
 * it.
 *
 * Errors: `LIBRARY`, `BUSY`.
 * Threads: as for `hoist_symbols_add_process`.
 */
hoist_status hoist_symbols_add_system_library(struct hoist_symbols *symbols,
                                              const char *name,
                                              struct hoist_error **error);

/**
 * Whether variables of libraries of the system may be moved to where code without `-fPIC` reaches them, as linkers of programs have it (copy
 * relocations): of the process and of the libraries that are in the list so far. Libraries follow; no other thread may use such a variable while
 * it is moved, which a load does that needs it, and it stays there. Off at first.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_symbols_add_process`.
 */
hoist_status hoist_symbols_set_copy_relocations(struct hoist_symbols *symbols,
                                                bool are_wanted,
                                                struct hoist_error **error);

/**
 * Adds a function to ask, with what it is given. See `hoist_symbol_callback`. `context` may be NULL, and must be good as long as the
 * list is used.
 *
 * Errors: `INVALID_ARGUMENT` if `callback` is NULL; `BUSY`.
 * Threads: as for `hoist_symbols_add_process`.
 */
hoist_status hoist_symbols_add_callback(struct hoist_symbols *symbols,
                                        hoist_symbol_callback callback,
                                        void *context,
                                        struct hoist_error **error);

/**
 * Defines one symbol: that `name` is at `address`, where it must stay as long as code uses it. `kind` is `HOIST_DEFINITION_...`.
 * A name that was defined before in this list by this function moves.
 *
 * Errors: `INVALID_ARGUMENT` for another kind; `BUSY`.
 * Threads: as for `hoist_symbols_add_process`.
 */
hoist_status hoist_symbols_define(struct hoist_symbols *symbols,
                                  const char *name,
                                  uint64_t address,
                                  uint32_t kind,
                                  struct hoist_error **error);

/**
 * Adds what a module shows to others: its global symbols that are not hidden. Modules that use one of them keep the module in memory
 * after it was freed.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_symbols_add_process`.
 */
hoist_status hoist_symbols_add_module(struct hoist_symbols *symbols,
                                      const struct hoist_module *module,
                                      struct hoist_error **error);

/**
 * Adds what a library shows that `hoist_library_open_file` or `hoist_library_open_memory` has loaded. Who uses one of its symbols
 * keeps it in memory after it was freed.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_symbols_add_process`.
 */
hoist_status hoist_symbols_add_library(struct hoist_symbols *symbols,
                                       const struct hoist_library *library,
                                       struct hoist_error **error);

/**
 * Adds an archive in a file: its members are loaded, together with the objects, as they are asked for.
 *
 * Errors: `FILE`, `BAD_FILE`, `BUSY`.
 * Threads: as for `hoist_symbols_add_process`.
 */
hoist_status hoist_symbols_add_archive_file(struct hoist_symbols *symbols,
                                            const char *path,
                                            struct hoist_error **error);

/**
 * The same of an archive in memory, which is copied. Thin archives are refused: their members are files.
 *
 * Errors: `BAD_FILE`, `UNSUPPORTED`, `BUSY`.
 * Threads: as for `hoist_symbols_add_process`.
 */
hoist_status hoist_symbols_add_archive_memory(struct hoist_symbols *symbols,
                                              const void *data,
                                              size_t size,
                                              struct hoist_error **error);

/**
 * Frees a list; NULL is none. What was loaded with it stays, with what it uses.
 *
 * Threads: nobody uses the list any more.
 */
void hoist_symbols_free(struct hoist_symbols *symbols);

/**
 * A loader with default options. Never NULL.
 *
 * Threads: any number at once.
 */
struct hoist_loader *hoist_loader_new(void);

/**
 * Whether code is written through other addresses than those where it is executed: no page becomes executable that was writable.
 * Off at first.
 *
 * Errors: `BUSY`.
 * Threads: one call at a time for each loader; another one is answered `BUSY`.
 */
hoist_status hoist_loader_set_dual_mapping(struct hoist_loader *loader,
                                           bool is_wanted,
                                           struct hoist_error **error);

/**
 * Whether modules whose code fills a huge page (2 MiB) ask for such pages. Off at first.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_loader_set_dual_mapping`.
 */
hoist_status hoist_loader_set_huge_pages(struct hoist_loader *loader,
                                         bool are_wanted,
                                         struct hoist_error **error);

/**
 * Whether functions can be replaced later (`hoist_module_replace`). Calls between them then go through stubs; compile with `-fPIC`,
 * so that compilers do not inline them or call them as local ones. Off at first.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_loader_set_dual_mapping`.
 */
hoist_status hoist_loader_set_replaceable(struct hoist_loader *loader,
                                          bool are_functions,
                                          struct hoist_error **error);

/**
 * Whether instructions that use the global offset table become others that do the same without it. On at first.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_loader_set_dual_mapping`.
 */
hoist_status hoist_loader_set_relax(struct hoist_loader *loader,
                                    bool is_wanted,
                                    struct hoist_error **error);

/**
 * Whether up to 1 MiB of memory of modules that are gone stays for those that come. Off at first.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_loader_set_dual_mapping`.
 */
hoist_status hoist_loader_set_reuse_memory(struct hoist_loader *loader,
                                           bool is_wanted,
                                           struct hoist_error **error);

/**
 * Has small modules (less than some 16 KiB, not replaceable) share pages and mappings: for very many of them.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_loader_set_dual_mapping`.
 */
hoist_status hoist_loader_use_arena(struct hoist_loader *loader,
                                    struct hoist_error **error);

/**
 * How many bytes a module may take at most. At first 16 GiB and 64 times the size of its objects.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_loader_set_dual_mapping`.
 */
hoist_status hoist_loader_set_limit(struct hoist_loader *loader,
                                    uint64_t bytes,
                                    struct hoist_error **error);

/**
 * Tells gdb of all modules: breakpoints, lines, unwinding.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_loader_set_dual_mapping`.
 */
hoist_status hoist_loader_tell_gdb(struct hoist_loader *loader, struct hoist_error **error);

/**
 * Tells perf of all modules, by its map of this process (`/tmp/perf-PID.map`).
 *
 * Errors: `FILE` if the map cannot be written; `BUSY`.
 * Threads: as for `hoist_loader_set_dual_mapping`.
 */
hoist_status hoist_loader_tell_perf(struct hoist_loader *loader, struct hoist_error **error);

/**
 * Writes all functions that are loaded, with their code and lines, to `jit-PID.dump` in `folder`, for `perf record -k CLOCK_MONOTONIC` and
 * `perf inject --jit`.
 *
 * Errors: `FILE` if that cannot be written, or not be mapped executable; `BUSY`.
 * Threads: as for `hoist_loader_set_dual_mapping`.
 */
hoist_status hoist_loader_tell_jitdump(struct hoist_loader *loader,
                                       const char *folder,
                                       struct hoist_error **error);

/**
 * Tells the program of all modules. See `hoist_observer`, which is copied.
 *
 * Errors: `INVALID_ARGUMENT` if `observer->loaded` is NULL; `BUSY`.
 * Threads: as for `hoist_loader_set_dual_mapping`.
 */
hoist_status hoist_loader_tell(struct hoist_loader *loader,
                               const struct hoist_observer *observer,
                               struct hoist_error **error);

/**
 * Loads objects into memory of this process: code, read-only data and writable data apart, no page writable and executable. No
 * code runs; constructors are for `hoist_module_initialize`.
 *
 * `loader` may be NULL: default options. `symbols` may be NULL: what the process has (`hoist_symbols_add_process`). All three can be
 * freed or used again afterwards. On error `*module` is NULL and nothing stays mapped.
 *
 * Errors: what is wrong with which object (`BAD_FILE`, `UNSUPPORTED`, `LAYOUT`, `RELOCATION`, `UNDEFINED_SYMBOL` ...); `MEMORY`,
 * `TOO_LARGE`, `THREAD_LOCAL`; `INVALID_ARGUMENT` if there are no objects; `OTHER` if an observer refuses; `BUSY`.
 * Threads: any number at once, with different objects and symbols; a loader may be shared.
 */
hoist_status hoist_loader_load(const struct hoist_loader *loader,
                               const struct hoist_objects *objects,
                               const struct hoist_symbols *symbols,
                               struct hoist_module **module,
                               struct hoist_error **error);

/**
 * Loads one object from a file, with default options and the symbols of the process: `hoist_loader_load` in one step. Archives are
 * refused.
 *
 * Errors: `FILE`; as `hoist_loader_load`.
 * Threads: any number at once.
 */
hoist_status hoist_load_file(const char *path,
                             struct hoist_module **module,
                             struct hoist_error **error);

/**
 * The same of `size` bytes in memory, which are copied. `label` is what errors call them; NULL stands for `"memory"`.
 *
 * Errors: as `hoist_loader_load`.
 * Threads: any number at once.
 */
hoist_status hoist_load_memory(const char *label,
                               const void *data,
                               size_t size,
                               struct hoist_module **module,
                               struct hoist_error **error);

/**
 * Frees a loader; NULL is none. What it has loaded stays.
 *
 * Threads: nobody uses the loader any more.
 */
void hoist_loader_free(struct hoist_loader *loader);

/**
 * Whether the objects have constructors that were not run yet; `false` of NULL.
 *
 * Threads: any number at once.
 */
bool hoist_module_needs_initialization(const struct hoist_module *module);

/**
 * Runs the constructors of the objects, once; later calls do nothing. Functions are given out afterwards only, if there are
 * constructors. Destructors will run when the module goes.
 *
 * Errors: `INVALID_ARGUMENT`.
 * Threads: any number at once; all return when the constructors have run.
 */
hoist_status hoist_module_initialize(struct hoist_module *module,
                                     struct hoist_error **error);

/**
 * The function `name`, to be cast to its type: `int (*f)(int) = (int (*)(int))function`. Good as long as the module.
 *
 * Errors: `NOT_FOUND`, `NOT_FUNCTION`, `NOT_INITIALIZED`.
 * Threads: any number at once.
 */
hoist_status hoist_module_function(const struct hoist_module *module,
                                   const char *name,
                                   hoist_function *function,
                                   struct hoist_error **error);

/**
 * The address of the symbol `name`, whatever it is, good as long as the module. Thread-local variables have none.
 *
 * Errors: `NOT_FOUND`.
 * Threads: any number at once.
 */
hoist_status hoist_module_address(const struct hoist_module *module,
                                  const char *name,
                                  void **address,
                                  struct hoist_error **error);

/**
 * Address and size of the memory that the module occupies. Each of the two places may be NULL.
 *
 * Errors: `INVALID_ARGUMENT`.
 * Threads: any number at once.
 */
hoist_status hoist_module_extent(const struct hoist_module *module,
                                 void **address,
                                 uint64_t *size,
                                 struct hoist_error **error);

/**
 * Unloads a module, unless other modules or replacements use it: then when the last of them goes. What its code has registered with
 * `atexit` runs, then its destructors, if it was initialized. NULL is none.
 *
 * Threads: nobody uses the handle any more, or runs code of the module, or has pointers to its data.
 */
void hoist_module_free(struct hoist_module *module);

/**
 * How many symbols have an address, local ones included; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_module_symbol_count(const struct hoist_module *module);

/**
 * Symbol `index`, from 0 on, object by object.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_module_symbol(const struct hoist_module *module,
                                 size_t index,
                                 struct hoist_module_symbol_row *symbol,
                                 struct hoist_error **error);

/**
 * The symbol that `address` is in - of several, the innermost - and, unless `offset` is NULL, how many bytes behind its start.
 *
 * Errors: `NOT_FOUND` if it is in none.
 * Threads: any number at once.
 */
hoist_status hoist_module_symbol_at(const struct hoist_module *module,
                                    const void *address,
                                    struct hoist_module_symbol_row *symbol,
                                    uint64_t *offset,
                                    struct hoist_error **error);

/**
 * How many sections the objects have; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_module_section_count(const struct hoist_module *module);

/**
 * Section `index` of all that the objects have, from 0 on, object by object, whether it is in memory or not.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_module_section(const struct hoist_module *module,
                                  size_t index,
                                  struct hoist_module_section_row *section,
                                  struct hoist_error **error);

/**
 * How many segments the module has: stretches of memory of one permission; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_module_segment_count(const struct hoist_module *module);

/**
 * Segment `index`, from 0 on.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_module_segment(const struct hoist_module *module,
                                  size_t index,
                                  struct hoist_module_segment_row *segment,
                                  struct hoist_error **error);

/**
 * How many bytes of the module's memory are in huge pages now, as the system tells it: what came of `hoist_loader_set_huge_pages`.
 *
 * Errors: `FILE` if the system does not tell.
 * Threads: any number at once.
 */
hoist_status hoist_module_bytes_in_huge_pages(const struct hoist_module *module,
                                              uint64_t *bytes,
                                              struct hoist_error **error);

/**
 * The address of the symbol that is called `name` in the source: `space::name(int)`, or, whatever it takes, `space::name`; of several the
 * first. A name that is not mangled is itself.
 *
 * Errors: `NOT_FOUND`.
 * Threads: any number at once.
 */
hoist_status hoist_module_find_demangled(const struct hoist_module *module,
                                         const char *name,
                                         void **address,
                                         struct hoist_error **error);

/**
 * How much memory the module takes.
 *
 * Errors: `INVALID_ARGUMENT`.
 * Threads: any number at once.
 */
hoist_status hoist_module_sizes(const struct hoist_module *module,
                                struct hoist_module_sizes_row *sizes,
                                struct hoist_error **error);

/**
 * Puts the function `name` of `replacing` in the place of the one of `module`, for all who call it or have its address, while threads
 * run. Calls that have begun end in the old function. Both modules stay in memory as long as the replacement, whether their handles
 * are freed or not. Both functions have one type. If a function is replaced several times, the last replacement counts.
 *
 * Data stay where they are; `hoist_objects_add_keeping_data` has new code use them.
 *
 * Errors: `NOT_REPLACEABLE` unless the module was loaded as replaceable (`hoist_loader_set_replaceable`) and defines the function;
 * `NOT_FOUND`, `NOT_FUNCTION`, `NOT_INITIALIZED` of either; `MEMORY`.
 * Threads: any number at once.
 */
hoist_status hoist_module_replace(const struct hoist_module *module,
                                  const char *name,
                                  const struct hoist_module *replacing,
                                  struct hoist_replacement **replacement,
                                  struct hoist_error **error);

/**
 * The same with any function of this process, which must stay as long as the replacement.
 *
 * Errors: as `hoist_module_replace`.
 * Threads: any number at once.
 */
hoist_status hoist_module_redirect(const struct hoist_module *module,
                                   const char *name,
                                   hoist_function function,
                                   struct hoist_replacement **replacement,
                                   struct hoist_error **error);

/**
 * Puts the function back that was replaced, or the one that an earlier replacement has; NULL is none.
 *
 * Threads: no thread is in the new function any more, unless the module that has it stays.
 */
void hoist_replacement_free(struct hoist_replacement *replacement);

/**
 * Loads a shared library out of a file. Its constructors run, and those of libraries that it needs, which are found as the dynamic
 * loader finds them, or among the libraries in `symbols` (by `DT_SONAME`). `symbols` may be NULL; it is asked last. `limit` is how many
 * bytes of memory the library may take, 0 standing for 16 GiB and 64 times the size of its file.
 *
 * The dynamic loader knows nothing of the library: `dlsym` and `dladdr` do not find it.
 *
 * Pages of the file are mapped, as `dlopen` does, not copied; with who is told of loads (`hoist_library_loader_tell`), it is read. As for
 * `dlopen`, nobody writes to the file or makes it shorter as long as the library is there; it may be removed, or another one put in its
 * place. A file that may be changed is for `hoist_library_open_memory`.
 *
 * Errors: `FILE`, `BAD_FILE`, `UNSUPPORTED` (a program, the C library), `UNDEFINED_SYMBOL`, `LIBRARY` for one that it needs,
 * `THREAD_LOCAL`, `MEMORY`, `TOO_LARGE`, `BUSY`.
 * Threads: any number at once, with different symbols.
 */
hoist_status hoist_library_open_file(const char *path,
                                     const struct hoist_symbols *symbols,
                                     uint64_t limit,
                                     struct hoist_library **library,
                                     struct hoist_error **error);

/**
 * The same of `size` bytes in memory, which are copied.
 *
 * Errors: as `hoist_library_open_file`.
 * Threads: as for `hoist_library_open_file`.
 */
hoist_status hoist_library_open_memory(const void *data,
                                       size_t size,
                                       const struct hoist_symbols *symbols,
                                       uint64_t limit,
                                       struct hoist_library **library,
                                       struct hoist_error **error);

/**
 * The function `name` of the default version, to be cast to its type: as `dlsym` has it, the library's own, else that of the first
 * library that has one of those that it needs, breadth first. Good as long as the library.
 *
 * Errors: `NOT_FOUND`, `NOT_FUNCTION`.
 * Threads: any number at once.
 */
hoist_status hoist_library_function(const struct hoist_library *library,
                                    const char *name,
                                    hoist_function *function,
                                    struct hoist_error **error);

/**
 * The function `name` of a version, as `dlvsym` has it: `HOIST_0.1`. Good as long as the library.
 *
 * Errors: `NOT_FOUND`, `NOT_FUNCTION`.
 * Threads: any number at once.
 */
hoist_status hoist_library_function_version(const struct hoist_library *library,
                                            const char *name,
                                            const char *version,
                                            hoist_function *function,
                                            struct hoist_error **error);

/**
 * The address of the symbol `name`, whatever it is, good as long as the library. Thread-local variables have none.
 *
 * Errors: `NOT_FOUND`.
 * Threads: any number at once.
 */
hoist_status hoist_library_address(const struct hoist_library *library,
                                   const char *name,
                                   void **address,
                                   struct hoist_error **error);

/**
 * The function that `address` is in, by its name, and, unless `offset` is NULL, how many bytes behind its start. Of functions that are not
 * exported the name is known if the file has its symbol table (`.symtab`). The text is good as long as the handle.
 *
 * Errors: `NOT_FOUND` if it is in none.
 * Threads: any number at once.
 */
hoist_status hoist_library_symbol_at(const struct hoist_library *library,
                                     const void *address,
                                     const char **name,
                                     uint64_t *offset,
                                     struct hoist_error **error);

/**
 * Address and size of the memory that the library occupies. Each of the two places may be NULL.
 *
 * Errors: `INVALID_ARGUMENT`.
 * Threads: any number at once.
 */
hoist_status hoist_library_extent(const struct hoist_library *library,
                                  void **address,
                                  uint64_t *size,
                                  struct hoist_error **error);

/**
 * Its name (`DT_SONAME`), empty if it has none or `library` is NULL. Never NULL; good as long as the handle.
 *
 * Threads: any number at once.
 */
const char *hoist_library_name(const struct hoist_library *library);

/**
 * Calls the library's destructors and gives its memory back, unless modules or libraries use it: then when the last of them goes.
 * NULL is none.
 *
 * Threads: nobody uses the handle any more, or runs code of the library, or has pointers to its data.
 */
void hoist_library_free(struct hoist_library *library);

/**
 * A loader with default options. Never NULL.
 *
 * Threads: any number at once.
 */
struct hoist_library_loader *hoist_library_loader_new(void);

/**
 * Whether functions that nobody has are left to their first call, as `dlopen` does with `RTLD_LAZY`: a library loads that refers to what its
 * program has not, or has later, opened for all (`RTLD_GLOBAL`). Who calls one that there is not even then ends the process, with words
 * on standard error and status 127, as with the dynamic loader. Off at first.
 *
 * Errors: `BUSY`.
 * Threads: one call at a time for each loader; another one is answered `BUSY`.
 */
hoist_status hoist_library_loader_set_lazy(struct hoist_library_loader *loader,
                                           bool is_wanted,
                                           struct hoist_error **error);

/**
 * How many bytes of memory a library may take, and each that is loaded because it is needed. 0, as at first, stands for 16 GiB and 64 times the
 * size of its file.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_library_loader_set_lazy`.
 */
hoist_status hoist_library_loader_set_limit(struct hoist_library_loader *loader,
                                            uint64_t bytes,
                                            struct hoist_error **error);

/**
 * The folder that `$ORIGIN` stands for where a library says where to look for others (`DT_RUNPATH`). Without this it is the folder of the
 * file, and of bytes in memory none.
 *
 * Errors: `FILE` for an empty path, and where there is no current folder that a relative one is in; `BUSY`.
 * Threads: as for `hoist_library_loader_set_lazy`.
 */
hoist_status hoist_library_loader_set_origin(struct hoist_library_loader *loader,
                                             const char *folder,
                                             struct hoist_error **error);

/**
 * Has a function asked for libraries that are needed, before the dynamic loader: a program has them inside of itself, in an archive. See
 * `hoist_needed_callback`; one that was set before is asked no more, and NULL sets none. Libraries in the list of symbols that a load is given
 * come first. `context` may be NULL, and must be good as long as the loader is used.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_library_loader_set_lazy`.
 */
hoist_status hoist_library_loader_set_needed(struct hoist_library_loader *loader,
                                             hoist_needed_callback callback,
                                             void *context,
                                             struct hoist_error **error);

/**
 * Tells gdb of all libraries: breakpoints, lines, unwinding.
 *
 * Errors: `BUSY`.
 * Threads: as for `hoist_library_loader_set_lazy`.
 */
hoist_status hoist_library_loader_tell_gdb(struct hoist_library_loader *loader,
                                           struct hoist_error **error);

/**
 * Tells perf of all libraries, by its map of this process (`/tmp/perf-PID.map`).
 *
 * Errors: `FILE` if the map cannot be written; `BUSY`.
 * Threads: as for `hoist_library_loader_set_lazy`.
 */
hoist_status hoist_library_loader_tell_perf(struct hoist_library_loader *loader,
                                            struct hoist_error **error);

/**
 * Writes all functions of libraries, with their code and lines, to `jit-PID.dump` in `folder`: as `hoist_loader_tell_jitdump`.
 *
 * Errors: `FILE` if that cannot be written, or not be mapped executable; `BUSY`.
 * Threads: as for `hoist_library_loader_set_lazy`.
 */
hoist_status hoist_library_loader_tell_jitdump(struct hoist_library_loader *loader,
                                               const char *folder,
                                               struct hoist_error **error);

/**
 * Tells the program of all libraries, with those that are loaded because they are needed. See `hoist_observer`, which is copied.
 *
 * Errors: `INVALID_ARGUMENT` if `observer->loaded` is NULL; `BUSY`.
 * Threads: as for `hoist_library_loader_set_lazy`.
 */
hoist_status hoist_library_loader_tell(struct hoist_library_loader *loader,
                                       const struct hoist_observer *observer,
                                       struct hoist_error **error);

/**
 * `hoist_library_open_file` with options.
 *
 * Errors: as `hoist_library_open_file`; `OTHER` if an observer refuses.
 * Threads: any number at once, with different symbols; a loader may be shared if its callbacks may.
 */
hoist_status hoist_library_loader_open_file(const struct hoist_library_loader *loader,
                                            const char *path,
                                            const struct hoist_symbols *symbols,
                                            struct hoist_library **library,
                                            struct hoist_error **error);

/**
 * `hoist_library_open_memory` with options.
 *
 * Errors: as `hoist_library_open_file`; `OTHER` if an observer refuses.
 * Threads: as for `hoist_library_loader_open_file`.
 */
hoist_status hoist_library_loader_open_memory(const struct hoist_library_loader *loader,
                                              const void *data,
                                              size_t size,
                                              const struct hoist_symbols *symbols,
                                              struct hoist_library **library,
                                              struct hoist_error **error);

/**
 * Frees a loader; NULL is none. What it has loaded stays.
 *
 * Threads: nobody uses the loader any more.
 */
void hoist_library_loader_free(struct hoist_library_loader *loader);

/**
 * Links objects, for any of the machines, into bytes that run at `base`. Nothing is mapped. `symbols` may be NULL: nothing is defined
 * beside the objects. `flags` are `HOIST_LINK_...`, added up. `limit` is how many bytes the image may have, 0 standing for 1 GiB and
 * 64 times the size of the objects.
 *
 * Errors: `UNDEFINED_SYMBOL`, `RELOCATION`, `LAYOUT` (also if `base` has not the alignment of the objects), `UNSUPPORTED`, `BAD_FILE`,
 * `TOO_LARGE`, `MEMORY`; `INVALID_ARGUMENT` for unknown flags or without objects; `BUSY`.
 * Threads: any number at once, with different objects and symbols.
 */
hoist_status hoist_link(const struct hoist_objects *objects,
                        const struct hoist_symbols *symbols,
                        uint64_t base,
                        uint32_t flags,
                        uint64_t limit,
                        struct hoist_image **image,
                        struct hoist_error **error);

/**
 * The image's bytes: what is to be at its base address. NULL if there are none, or `image` is NULL. Good as long as the image.
 *
 * Threads: any number at once.
 */
const void *hoist_image_data(const struct hoist_image *image);

/**
 * How many bytes it has; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_image_size(const struct hoist_image *image);

/**
 * The address that it was linked for; 0 of NULL.
 *
 * Threads: any number at once.
 */
uint64_t hoist_image_base(const struct hoist_image *image);

/**
 * The address that the global symbol `name` has where the image will run.
 *
 * Errors: `NOT_FOUND`.
 * Threads: any number at once.
 */
hoist_status hoist_image_address(const struct hoist_image *image,
                                 const char *name,
                                 uint64_t *address,
                                 struct hoist_error **error);

/**
 * How many symbols the image has, local ones included; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_image_symbol_count(const struct hoist_image *image);

/**
 * Symbol `index`, from 0 on, object by object.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_image_symbol(const struct hoist_image *image,
                                size_t index,
                                struct hoist_image_symbol_row *symbol,
                                struct hoist_error **error);

/**
 * How many segments the image has; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_image_segment_count(const struct hoist_image *image);

/**
 * Segment `index`, from 0 on.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_image_segment(const struct hoist_image *image,
                                 size_t index,
                                 struct hoist_image_segment_row *segment,
                                 struct hoist_error **error);

/**
 * Frees an image; NULL is none.
 *
 * Threads: nobody uses the image any more.
 */
void hoist_image_free(struct hoist_image *image);

/**
 * Reads an ELF file, of any machine and kind.
 *
 * Errors: `FILE`, `BAD_FILE`, `UNSUPPORTED`.
 * Threads: any number at once.
 */
hoist_status hoist_file_open(const char *path, struct hoist_file **file, struct hoist_error **error);

/**
 * The same of `size` bytes in memory, which are copied. `label` is what errors call them; NULL stands for `"memory"`.
 *
 * Errors: `BAD_FILE`, `UNSUPPORTED`.
 * Threads: any number at once.
 */
hoist_status hoist_file_parse(const char *label,
                              const void *data,
                              size_t size,
                              struct hoist_file **file,
                              struct hoist_error **error);

/**
 * The header.
 *
 * Errors: `INVALID_ARGUMENT`.
 * Threads: any number at once.
 */
hoist_status hoist_file_get_info(const struct hoist_file *file,
                                 struct hoist_file_info *info,
                                 struct hoist_error **error);

/**
 * How many sections the file has, the null section (0) included; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_file_section_count(const struct hoist_file *file);

/**
 * Section `index`, as it is numbered in the file: 0 is the null section.
 *
 * Errors: `OUT_OF_RANGE`; `BAD_FILE` if its name is damaged.
 * Threads: any number at once.
 */
hoist_status hoist_file_section(const struct hoist_file *file,
                                size_t index,
                                struct hoist_file_section_row *section,
                                struct hoist_error **error);

/**
 * The number of the first section of this name.
 *
 * Errors: `NOT_FOUND`.
 * Threads: any number at once.
 */
hoist_status hoist_file_find_section(const struct hoist_file *file,
                                     const char *name,
                                     size_t *index,
                                     struct hoist_error **error);

/**
 * The bytes of section `index` as the file has them, without relocation or decompression: none of `SHT_NOBITS`. `*data` is NULL if
 * there are none; else good as long as the file.
 *
 * Errors: `OUT_OF_RANGE`; `BAD_FILE` if they are not inside the file.
 * Threads: any number at once.
 */
hoist_status hoist_file_section_data(const struct hoist_file *file,
                                     size_t index,
                                     const void **data,
                                     size_t *size,
                                     struct hoist_error **error);

/**
 * How many segments the file has; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_file_segment_count(const struct hoist_file *file);

/**
 * Segment `index`, from 0 on.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_file_segment(const struct hoist_file *file,
                                size_t index,
                                struct hoist_file_segment_row *segment,
                                struct hoist_error **error);

/**
 * Frees a file; NULL is none.
 *
 * Threads: nobody uses the file any more.
 */
void hoist_file_free(struct hoist_file *file);

/**
 * How many symbols a table has (`HOIST_SYMBOL_TABLE`, `HOIST_DYNAMIC_SYMBOL_TABLE`), the null symbol (0) included; 0 if there is no
 * such table.
 *
 * Errors: `BAD_FILE`; `INVALID_ARGUMENT` for another table.
 * Threads: any number at once.
 */
hoist_status hoist_file_symbol_count(const struct hoist_file *file,
                                     uint32_t table_kind,
                                     size_t *count,
                                     struct hoist_error **error);

/**
 * Symbol `index` of a table, as it is numbered in the file: 0 is the null symbol.
 *
 * Errors: `OUT_OF_RANGE`; `BAD_FILE`; `INVALID_ARGUMENT` for another table.
 * Threads: any number at once.
 */
hoist_status hoist_file_symbol(const struct hoist_file *file,
                               uint32_t table_kind,
                               size_t index,
                               struct hoist_file_symbol_row *symbol,
                               struct hoist_error **error);

/**
 * The number of the symbol of this name: a definition rather than a reference, if there are both.
 *
 * Errors: `NOT_FOUND`; `BAD_FILE`; `INVALID_ARGUMENT` for another table.
 * Threads: any number at once.
 */
hoist_status hoist_file_find_symbol(const struct hoist_file *file,
                                    uint32_t table_kind,
                                    const char *name,
                                    size_t *index,
                                    struct hoist_error **error);

/**
 * How many relocations section `section` has: 0 if it is none with relocations (`SHT_RELA`, `SHT_REL`, `SHT_CREL`, `SHT_RELR`,
 * Android's packed ones).
 *
 * Errors: `OUT_OF_RANGE`; `BAD_FILE`.
 * Threads: any number at once.
 */
hoist_status hoist_file_relocation_count(const struct hoist_file *file,
                                         size_t section,
                                         size_t *count,
                                         struct hoist_error **error);

/**
 * Relocation `index` of section `section`, from 0 on.
 *
 * Errors: `OUT_OF_RANGE`; `BAD_FILE`, also if the symbol is not in its table.
 * Threads: any number at once.
 */
hoist_status hoist_file_relocation(const struct hoist_file *file,
                                   size_t section,
                                   size_t index,
                                   struct hoist_file_relocation_row *relocation,
                                   struct hoist_error **error);

/**
 * Reads an archive, thin ones included.
 *
 * Errors: `FILE`, `BAD_FILE`.
 * Threads: any number at once.
 */
hoist_status hoist_archive_open(const char *path,
                                struct hoist_archive **archive,
                                struct hoist_error **error);

/**
 * The same of `size` bytes in memory, which are copied. `label` is what errors call them; NULL stands for `"memory"`.
 *
 * Errors: `BAD_FILE`.
 * Threads: any number at once.
 */
hoist_status hoist_archive_parse(const char *label,
                                 const void *data,
                                 size_t size,
                                 struct hoist_archive **archive,
                                 struct hoist_error **error);

/**
 * How many members that are files the archive has; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_archive_member_count(const struct hoist_archive *archive);

/**
 * Member `index`, from 0 on: its name and its bytes. Of a thin archive's members, which are files of their own, `*data` is NULL.
 * Pointers are good as long as the archive.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_archive_member(const struct hoist_archive *archive,
                                  size_t index,
                                  const char **name,
                                  const void **data,
                                  size_t *size,
                                  struct hoist_error **error);

/**
 * Frees an archive; NULL is none.
 *
 * Threads: nobody uses the archive any more.
 */
void hoist_archive_free(struct hoist_archive *archive);

/**
 * Reads a cubin out of a file.
 *
 * Errors: `FILE`, `BAD_FILE`.
 * Threads: any number at once.
 */
hoist_status hoist_cubin_open(const char *path, struct hoist_cubin **cubin, struct hoist_error **error);

/**
 * The same of `size` bytes in memory, which are copied. `label` is what errors call them; NULL stands for `"memory"`.
 *
 * Errors: `BAD_FILE`.
 * Threads: any number at once.
 */
hoist_status hoist_cubin_parse(const char *label,
                               const void *data,
                               size_t size,
                               struct hoist_cubin **cubin,
                               struct hoist_error **error);

/**
 * What the cubin is for.
 *
 * Errors: `INVALID_ARGUMENT`.
 * Threads: any number at once.
 */
hoist_status hoist_cubin_get_info(const struct hoist_cubin *cubin,
                                  struct hoist_cubin_info *info,
                                  struct hoist_error **error);

/**
 * How many kernels the cubin has; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_cubin_kernel_count(const struct hoist_cubin *cubin);

/**
 * Kernel `index`, from 0 on, and what it needs.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_cubin_kernel(const struct hoist_cubin *cubin,
                                size_t index,
                                struct hoist_cubin_kernel_row *kernel_info,
                                struct hoist_error **error);

/**
 * The number of the kernel of this name, mangled if it is so in the cubin.
 *
 * Errors: `NOT_FOUND`.
 * Threads: any number at once.
 */
hoist_status hoist_cubin_find_kernel(const struct hoist_cubin *cubin,
                                     const char *name,
                                     size_t *index,
                                     struct hoist_error **error);

/**
 * Parameter `index` of kernel `kernel_index`, both from 0 on, in the order of the source.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_cubin_parameter(const struct hoist_cubin *cubin,
                                   size_t kernel_index,
                                   size_t index,
                                   struct hoist_cubin_parameter_row *parameter,
                                   struct hoist_error **error);

/**
 * Attribute `index` of kernel `kernel_index`, both from 0 on, in the order of the file.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_cubin_attribute(const struct hoist_cubin *cubin,
                                   size_t kernel_index,
                                   size_t index,
                                   struct hoist_cubin_attribute_row *attribute,
                                   struct hoist_error **error);

/**
 * How many blocks of `threads` threads, with so many bytes of dynamic shared memory, fit a multiprocessor of the cubin's
 * architecture.
 *
 * Errors: `OUT_OF_RANGE`; `UNSUPPORTED` if the architecture's limits are not known; `INVALID_ARGUMENT` for 0 threads.
 * Threads: any number at once.
 */
hoist_status hoist_cubin_occupancy(const struct hoist_cubin *cubin,
                                   size_t kernel_index,
                                   uint32_t threads,
                                   uint64_t dynamic_shared,
                                   struct hoist_cubin_occupancy_row *occupancy,
                                   struct hoist_error **error);

/**
 * Links relocatable cubins, as nvlink does, to one that can be loaded. Archives among the objects are refused. `sm` is the architecture
 * (90), 0 standing for that of the first.
 *
 * Errors: `BAD_FILE`, `UNSUPPORTED`, `UNDEFINED_SYMBOL`, `RELOCATION`, `LAYOUT`, `TOO_LARGE`; fields are those of the first error, the
 * message has all. `INVALID_ARGUMENT` without objects; `BUSY`.
 * Threads: any number at once, with different objects.
 */
hoist_status hoist_cubin_link(const struct hoist_objects *objects,
                              uint32_t sm,
                              struct hoist_buffer **linked,
                              struct hoist_error **error);

/**
 * The same with some kernels only: those whose names have one of `count` texts in them. Others are dropped, with what they alone reach.
 *
 * Errors: as `hoist_cubin_link`; `INVALID_ARGUMENT` if a text is NULL or not UTF-8.
 * Threads: any number at once, with different objects.
 */
hoist_status hoist_cubin_link_kernels(const struct hoist_objects *objects,
                                      uint32_t sm,
                                      const char *const *kernels,
                                      size_t count,
                                      struct hoist_buffer **linked,
                                      struct hoist_error **error);

/**
 * Puts relocatable cubins together into one that is relocatable still, as `nvlink -r` does: linked later, it is what the objects are. Names
 * that are undefined stay so.
 *
 * Errors: as `hoist_cubin_link`, but those of what is undefined or too large.
 * Threads: any number at once, with different objects.
 */
hoist_status hoist_cubin_link_relocatable(const struct hoist_objects *objects,
                                          uint32_t sm,
                                          struct hoist_buffer **linked,
                                          struct hoist_error **error);

/**
 * Frees a cubin; NULL is none.
 *
 * Threads: nobody uses the cubin any more.
 */
void hoist_cubin_free(struct hoist_cubin *cubin);

/**
 * Reads the device code of any file: a fatbin, an object, a program, a library, an archive, whatever contains it. A file without has
 * no regions. Containers of LLVM (`.llvm.offloading`) and cubins outside of regions are passed over.
 *
 * Errors: `FILE`, `BAD_FILE`.
 * Threads: any number at once.
 */
hoist_status hoist_fatbin_open(const char *path,
                               struct hoist_fatbin **fatbin,
                               struct hoist_error **error);

/**
 * The same of `size` bytes in memory, which are copied. `label` is what errors call them; NULL stands for `"memory"`.
 *
 * Errors: `BAD_FILE`.
 * Threads: any number at once.
 */
hoist_status hoist_fatbin_parse(const char *label,
                                const void *data,
                                size_t size,
                                struct hoist_fatbin **fatbin,
                                struct hoist_error **error);

/**
 * How many regions the file has, of each of which a driver selects one image; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_fatbin_region_count(const struct hoist_fatbin *fatbin);

/**
 * How many images all regions have together; 0 of NULL.
 *
 * Threads: any number at once.
 */
size_t hoist_fatbin_entry_count(const struct hoist_fatbin *fatbin);

/**
 * Image `index` of all, from 0 on, region by region.
 *
 * Errors: `OUT_OF_RANGE`.
 * Threads: any number at once.
 */
hoist_status hoist_fatbin_entry(const struct hoist_fatbin *fatbin,
                                size_t index,
                                struct hoist_fatbin_entry_row *entry,
                                struct hoist_error **error);

/**
 * Image `index` of all, unpacked: at most `limit` bytes, 0 standing for 1 GiB.
 *
 * Errors: `OUT_OF_RANGE`, `BAD_FILE`, `UNSUPPORTED` (obfuscated NVVM), `TOO_LARGE`.
 * Threads: any number at once.
 */
hoist_status hoist_fatbin_unpack(const struct hoist_fatbin *fatbin,
                                 size_t index,
                                 size_t limit,
                                 struct hoist_buffer **image,
                                 struct hoist_error **error);

/**
 * The image of region `region` that a driver for CUDA `driver_major.driver_minor` takes for a device of architecture `sm` (90): its
 * number among all, and, unless `image` is NULL, its bytes, unpacked (at most 1 GiB).
 *
 * Errors: `NO_FIT` if none runs there; `OUT_OF_RANGE`, `BAD_FILE`, `UNSUPPORTED`, `TOO_LARGE`.
 * Threads: any number at once.
 */
hoist_status hoist_fatbin_select(const struct hoist_fatbin *fatbin,
                                 size_t region,
                                 uint32_t sm,
                                 uint16_t driver_major,
                                 uint16_t driver_minor,
                                 size_t *index,
                                 struct hoist_buffer **image,
                                 struct hoist_error **error);

/**
 * A region of the images whose numbers `indices` has, `count` of them, in this order, as they are stored: what is left of a region
 * when others are dropped. It is a file of its own (`.fatbin`).
 *
 * Errors: `OUT_OF_RANGE`, `BAD_FILE`; `INVALID_ARGUMENT` without images.
 * Threads: any number at once.
 */
hoist_status hoist_fatbin_build(const struct hoist_fatbin *fatbin,
                                const size_t *indices,
                                size_t count,
                                struct hoist_buffer **region,
                                struct hoist_error **error);

/**
 * Frees a fatbin; NULL is none.
 *
 * Threads: nobody uses the fatbin any more.
 */
void hoist_fatbin_free(struct hoist_fatbin *fatbin);

/**
 * The whole file with `size` bytes at `data`, a cubin or PTX, in the place of image `index` of all. Whatever the file is - a fatbin, an
 * object, a program, a library, an archive - it stays usable as such. `compression` is `"none"`, `"zlib"`, `"lz4"`, `"lz4 frame"` or
 * `"zstd"`; NULL stands for that of the image before. `flags` are `HOIST_FATBIN_...`, added up.
 *
 * Errors: `OUT_OF_RANGE`; `BAD_FILE`; `NO_FIT` if the code is for another architecture or of another kind; `UNSUPPORTED` of files that
 * cannot be changed, and images that are several in one; `LAYOUT` if something stands against the change; `INVALID_ARGUMENT` for unknown
 * flags and methods.
 * Threads: any number at once.
 */
hoist_status hoist_fatbin_replace(const struct hoist_fatbin *fatbin,
                                  size_t index,
                                  const void *data,
                                  size_t size,
                                  const char *compression,
                                  uint32_t flags,
                                  struct hoist_buffer **file,
                                  struct hoist_error **error);

/**
 * The whole file with those images only whose numbers `indices` has, `count` of them. Regions of which none is left stay, without
 * images: what they held does not run any more.
 *
 * Errors: `OUT_OF_RANGE`, `BAD_FILE`; `UNSUPPORTED`, `LAYOUT` as for `hoist_fatbin_replace`; `INVALID_ARGUMENT` without images.
 * Threads: any number at once.
 */
hoist_status hoist_fatbin_prune(const struct hoist_fatbin *fatbin,
                                const size_t *indices,
                                size_t count,
                                struct hoist_buffer **file,
                                struct hoist_error **error);

/**
 * How many GPUs there are, by the CUDA driver, which is looked for as `libcuda.so.1`.
 *
 * Errors: `NO_DEVICE` without a driver, or without a GPU; `DEVICE`.
 * Threads: any number at once.
 */
hoist_status hoist_device_count(uint32_t *count, struct hoist_error **error);

/**
 * GPU `ordinal`, as the driver counts them from 0. Its context is the primary one, which others in the process may use, too.
 *
 * Errors: `NO_DEVICE` without a driver (CUDA 12.0 or newer), without a GPU, or if there are not so many; `DEVICE`.
 * Threads: any number at once.
 */
hoist_status hoist_device_open(uint32_t ordinal,
                               struct hoist_device **device,
                               struct hoist_error **error);

/**
 * What the device is.
 *
 * Errors: `INVALID_ARGUMENT`.
 * Threads: any number at once.
 */
hoist_status hoist_device_get_info(const struct hoist_device *device,
                                   struct hoist_device_info *info,
                                   struct hoist_error **error);

/**
 * Waits for all launches that were made on the device by this handle.
 *
 * Errors: `DEVICE`, of a kernel that has failed, too.
 * Threads: any number at once.
 */
hoist_status hoist_device_synchronize(const struct hoist_device *device,
                                      struct hoist_error **error);

/**
 * Makes the device usable again after a kernel has failed: until then, everything on it is answered `DEVICE`. All memory and code on
 * it is gone, that of other users in the process, too; handles of it can be freed only. Does nothing if no kernel has failed.
 *
 * Errors: `DEVICE` if it is not usable again.
 * Threads: any number at once.
 */
hoist_status hoist_device_reset(struct hoist_device *device,
                                struct hoist_error **error);

/**
 * Frees a device; NULL is none. What was made on it stays until it is freed itself.
 *
 * Threads: nobody uses the handle any more.
 */
void hoist_device_free(struct hoist_device *device);

/**
 * `size` bytes of memory of a device. What is in them is not said.
 *
 * Errors: `MEMORY`, field `value`; `DEVICE`; `INVALID_ARGUMENT` for 0 bytes.
 * Threads: any number at once.
 */
hoist_status hoist_device_memory_new(const struct hoist_device *device,
                                     uint64_t size,
                                     struct hoist_device_memory **memory,
                                     struct hoist_error **error);

/**
 * How many bytes there are; 0 of NULL.
 *
 * Threads: any number at once.
 */
uint64_t hoist_device_memory_size(const struct hoist_device_memory *memory);

/**
 * The address on the device; 0 of NULL. Structures that kernels take may have it inside: then nobody but the caller keeps the memory
 * until the kernel is done.
 *
 * Threads: any number at once.
 */
uint64_t hoist_device_memory_address(const struct hoist_device_memory *memory);

/**
 * Copies `size` bytes at `data` to byte `offset` of the memory and those behind it.
 *
 * Errors: `OUT_OF_RANGE`; `BUSY` if a launch uses the memory that was not waited for (`hoist_device_synchronize`), or another copy;
 * `DEVICE`.
 * Threads: any number at once; two copies at once of one memory are answered `BUSY`, unless both only read.
 */
hoist_status hoist_device_memory_write(struct hoist_device_memory *memory,
                                       uint64_t offset,
                                       const void *data,
                                       size_t size,
                                       struct hoist_error **error);

/**
 * Copies `size` bytes from byte `offset` of the memory on to `data`, where zeros are after failure.
 *
 * Errors: as for `hoist_device_memory_write`.
 * Threads: as for `hoist_device_memory_write`.
 */
hoist_status hoist_device_memory_read(const struct hoist_device_memory *memory,
                                      uint64_t offset,
                                      void *data,
                                      size_t size,
                                      struct hoist_error **error);

/**
 * Copies `size` bytes from byte `from_offset` of one memory to byte `to_offset` of another, or of the same, behind all launches, and
 * waits for it. They may be of two devices.
 *
 * Errors: `OUT_OF_RANGE`, `BUSY`, `DEVICE`; `INVALID_ARGUMENT` if source and target overlap, or of different devices one cannot
 * reach the other.
 * Threads: as for `hoist_device_memory_write`.
 */
hoist_status hoist_device_memory_copy(const struct hoist_device_memory *from,
                                      uint64_t from_offset,
                                      struct hoist_device_memory *to,
                                      uint64_t to_offset,
                                      uint64_t size,
                                      struct hoist_error **error);

/**
 * Frees memory; NULL is none. If a launch uses it, it goes when the launch is done.
 *
 * Threads: nobody uses the handle any more.
 */
void hoist_device_memory_free(struct hoist_device_memory *memory);

/**
 * Loads the code of a file that is for the device: of a cubin, PTX, a fatbin, or a library, program, object or archive that contains
 * such. Of the latter four, a kernel's code is loaded when the kernel is opened. `flags` are `HOIST_DEVICE_CODE_...`, added up.
 *
 * Errors: `FILE`, `BAD_FILE`, `UNSUPPORTED`, `LAYOUT`, `MEMORY`, `DEVICE`; `NO_FIT` if there is no code for the device;
 * `INVALID_ARGUMENT` for unknown flags.
 * Threads: any number at once.
 */
hoist_status hoist_device_code_load_file(const struct hoist_device *device,
                                         const char *path,
                                         uint32_t flags,
                                         struct hoist_device_code **code,
                                         struct hoist_error **error);

/**
 * The same of `size` bytes in memory. `label` is what errors call them; NULL stands for `"memory"`.
 *
 * Errors: as for `hoist_device_code_load_file`, but `FILE`.
 * Threads: any number at once.
 */
hoist_status hoist_device_code_load_memory(const struct hoist_device *device,
                                           const char *label,
                                           const void *data,
                                           size_t size,
                                           uint32_t flags,
                                           struct hoist_device_code **code,
                                           struct hoist_error **error);

/**
 * Address on the device, and, unless `size` is NULL, size in bytes of the variable `name`. Constants are variables of what the driver
 * has loaded only.
 *
 * Errors: `NOT_FOUND`, `DEVICE`.
 * Threads: any number at once.
 */
hoist_status hoist_device_code_variable(const struct hoist_device_code *code,
                                        const char *name,
                                        uint64_t *address,
                                        uint64_t *size,
                                        struct hoist_error **error);

/**
 * Frees code; NULL is none. Kernels of it can be launched until they are freed.
 *
 * Threads: nobody uses the handle any more.
 */
void hoist_device_code_free(struct hoist_device_code *code);

/**
 * The kernel `name`, mangled if it is so in the file.
 *
 * Errors: `NOT_FOUND`, `BAD_FILE`, `UNSUPPORTED`, `NO_FIT`, `LAYOUT`, `MEMORY`, `DEVICE`.
 * Threads: any number at once.
 */
hoist_status hoist_kernel_open(const struct hoist_device_code *code,
                               const char *name,
                               struct hoist_kernel **kernel,
                               struct hoist_error **error);

/**
 * Launches a kernel, behind what was launched on its device before. `arguments` are `count` of them, one for each parameter; they are
 * compared with what the file says. Unless `seconds` is NULL, it is how long the kernel took, if the launch waits, else 0.
 *
 * Errors: `LAUNCH` if the kernel or the device cannot do so; `OUT_OF_RANGE` of an offset; `BUSY` if memory is being copied; `DEVICE`,
 * of the kernel itself, too, if the launch waits; `INVALID_ARGUMENT` for unknown flags, and memory of another device.
 * Threads: any number at once.
 */
hoist_status hoist_kernel_launch(const struct hoist_kernel *kernel,
                                 const struct hoist_launch *launch,
                                 const struct hoist_kernel_argument *arguments,
                                 size_t count,
                                 double *seconds,
                                 struct hoist_error **error);

/**
 * Frees a kernel; NULL is none. What was launched runs to its end.
 *
 * Threads: nobody uses the handle any more.
 */
void hoist_kernel_free(struct hoist_kernel *kernel);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HOIST_H */
