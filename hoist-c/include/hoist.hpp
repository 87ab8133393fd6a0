/*
 * hoist for C++17 and later: handles that free themselves, exceptions, views of bytes. Header-only, on hoist.h, which says what functions do,
 * what errors there are, and which threads may call.
 *
 *     hoist::Module module = hoist::load_file("plugin.o");
 *     int answer = module.function<int(int)>("twice")(21);
 *
 * A handle that was moved from is empty; using it throws hoist::Error (INVALID_ARGUMENT), as NULL does in C.
 */
#ifndef HOIST_HPP
#define HOIST_HPP

#if __cplusplus < 201703L
#error "hoist.hpp is for C++17 and later; hoist.h is for C++11 and later, too"
#elif !defined(__cpp_exceptions)
#error "hoist.hpp throws exceptions; where there are none (-fno-exceptions), hoist.h says by what functions return what is wrong"
#endif

#include "hoist.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace hoist {

/** Elements that somebody else has: std::span of C++20, which it becomes and is made of there. */
template <typename T> class View {
public:
    View() noexcept = default;
    View(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    /** Of an array. */
    template <std::size_t N> View(T (&array)[N]) noexcept : data_(array), size_(N) {}
    /** Of a container: std::vector, std::array, std::string ... One that goes at the end of the statement can be looked at until then. */
    template <typename C,
              typename = std::enable_if_t<!std::is_same_v<std::decay_t<C>, View>
                                          && std::is_convertible_v<decltype(std::declval<C &>().data()), T *>
                                          && (std::is_lvalue_reference_v<C> || std::is_const_v<T>)>>
    View(C &&container) noexcept : data_(container.data()), size_(container.size()) {}
#if __cplusplus >= 202002L
    template <typename U, std::size_t N, typename = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
    View(std::span<U, N> span) noexcept : data_(span.data()), size_(span.size()) {}
#endif

    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return size_ == 0 ? data_ : data_ + size_; }
    T &operator[](std::size_t index) const noexcept { return data_[index]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/** Bytes that somebody else has. */
using Bytes = View<const unsigned char>;

/** Bytes at any pointer. */
inline Bytes bytes(const void *data, std::size_t size) noexcept { return {static_cast<const unsigned char *>(data), size}; }
#if __cplusplus >= 202002L
inline Bytes bytes(std::span<const std::byte> span) noexcept { return bytes(span.data(), span.size()); }
#endif

/** The version of the library: "0.1.0". */
inline std::string version() { return hoist_version(); }

/** What a function of hoist.h has found wrong. */
class Error : public std::runtime_error {
public:
    /** Takes the error over, and frees it. */
    explicit Error(hoist_status status, hoist_error *error)
        : std::runtime_error(error != nullptr ? hoist_error_message(error) : hoist_status_name(status)), status_(status) {
        const std::unique_ptr<hoist_error, void (*)(hoist_error *)> freed(error, hoist_error_free);
        hoist_error_info info;
        if (hoist_error_get_info(error, &info)) {
            file_ = text(info.file);
            section_ = text(info.section);
            symbol_ = text(info.symbol);
            relocation_ = text(info.relocation);
            numbers_ = info;
            numbers_.message = numbers_.file = numbers_.section = numbers_.symbol = numbers_.relocation = nullptr;
        }
    }

    /** One that is found before hoist.h is asked. */
    Error(hoist_status status, const std::string &message) : std::runtime_error(message), status_(status) { numbers_.kind = status; }

    hoist_status status() const noexcept { return status_; }
    /** The file or object, as it was called; empty if it is not known. The same of the others. */
    const std::string &file() const noexcept { return file_; }
    const std::string &section() const noexcept { return section_; }
    const std::string &symbol() const noexcept { return symbol_; }
    const std::string &relocation() const noexcept { return relocation_; }
    std::optional<std::uint64_t> offset() const noexcept { return known(HOIST_ERROR_HAS_OFFSET, numbers_.offset); }
    std::optional<std::uint64_t> value() const noexcept { return known(HOIST_ERROR_HAS_VALUE, numbers_.value); }
    std::optional<std::int64_t> minimum() const noexcept { return known(HOIST_ERROR_HAS_LIMITS, numbers_.minimum); }
    std::optional<std::uint64_t> maximum() const noexcept { return known(HOIST_ERROR_HAS_LIMITS, numbers_.maximum); }
    std::optional<int> os_error() const noexcept { return known(HOIST_ERROR_HAS_OS_ERROR, numbers_.os_error); }
    /** All numbers; its pointers are NULL. */
    const hoist_error_info &info() const noexcept { return numbers_; }

private:
    static std::string text(const char *text) { return text != nullptr ? text : ""; }
    template <typename T> std::optional<T> known(std::uint32_t field, T value) const noexcept {
        return (numbers_.fields & field) != 0 ? std::optional<T>(value) : std::nullopt;
    }

    hoist_status status_;
    std::string file_, section_, symbol_, relocation_;
    hoist_error_info numbers_{};
};

namespace detail {

template <typename T, void (*Free)(T *)> struct Deleter {
    void operator()(T *handle) const noexcept { Free(handle); }
};

template <typename T, void (*Free)(T *)> using Handle = std::unique_ptr<T, Deleter<T, Free>>;

/** Text for C, which would take what is behind a NUL for somebody else's. */
inline const char *text(const std::string &text) {
    if (text.find('\0') != std::string::npos) {
        throw Error(HOIST_STATUS_INVALID_ARGUMENT, "a text has NUL inside");
    }
    return text.c_str();
}

/** A handle where NULL stands for something else in C. */
template <typename H> H *needed(H *handle, const char *what) {
    if (handle == nullptr) {
        throw Error(HOIST_STATUS_INVALID_ARGUMENT, std::string(what) + " is NULL");
    }
    return handle;
}

/** Calls a function of hoist.h; throws what it finds wrong. */
template <typename F, typename... A> void call(F function, A... arguments) {
    hoist_error *error = nullptr;
    const hoist_status status = function(arguments..., &error);
    if (status != HOIST_STATUS_OK) {
        throw Error(status, error);
    }
}

/** The same of a function that makes a handle, or gives a value. */
template <typename T, typename F, typename... A> T made(F function, A... arguments) {
    T result{};
    call(function, arguments..., &result);
    return result;
}

/** All rows of a table. */
template <typename Row, typename H, typename F> std::vector<Row> rows(const H *handle, std::size_t count, F function) {
    std::vector<Row> found;
    found.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
        found.push_back(made<Row>(function, handle, index));
    }
    return found;
}

/** Address and size of the memory that code occupies. */
template <typename F, typename H> std::pair<void *, std::uint64_t> extent(F function, const H *handle) {
    std::pair<void *, std::uint64_t> found{};
    call(function, handle, &found.first, &found.second);
    return found;
}

/** A function of this type. */
template <typename F> F *typed(hoist_function function) {
    static_assert(std::is_function_v<F>, "the type of a function, such as int(int)");
    return reinterpret_cast<F *>(function);
}

} // namespace detail

/** Bytes that were made: hoist_buffer. */
class Buffer {
public:
    explicit Buffer(hoist_buffer *taken = nullptr) noexcept : handle_(taken) {}
    Bytes bytes() const noexcept {
        return {static_cast<const unsigned char *>(hoist_buffer_data(handle_.get())), hoist_buffer_size(handle_.get())};
    }
    const hoist_buffer *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<hoist_buffer, hoist_buffer_free> handle_;
};

class Module;

/** Objects and archives to load or to link: hoist_objects. */
class Objects {
public:
    Objects() : handle_(hoist_objects_new()) {}
    Objects &file(const std::string &path) {
        detail::call(hoist_objects_add_file, handle_.get(), detail::text(path));
        return *this;
    }
    Objects &memory(Bytes bytes, const std::string &label = "memory") {
        detail::call(hoist_objects_add_memory, handle_.get(), detail::text(label), static_cast<const void *>(bytes.data()), bytes.size());
        return *this;
    }
    inline Objects &keeping_data(Bytes bytes, const Module &old, const std::string &label = "memory");
    Objects &whole_archive(bool is_whole) {
        detail::call(hoist_objects_set_whole_archive, handle_.get(), is_whole);
        return *this;
    }
    /** How many objects are loaded in any case. */
    std::size_t count() const { return detail::made<std::size_t>(hoist_objects_count, handle_.get()); }
    const hoist_objects *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<hoist_objects, hoist_objects_free> handle_;
};

class Library;

/** Sources of symbols, in the order in which they are asked: hoist_symbols. */
class Symbols {
public:
    /** Says where a symbol is, or that it does not know. What it throws is thrown by the load or link that asked. */
    using Find = std::function<std::optional<hoist_definition>(const char *name)>;

    Symbols() : handle_(hoist_symbols_new()) {}
    Symbols &process() {
        detail::call(hoist_symbols_add_process, handle_.get());
        return *this;
    }
    Symbols &system_library(const std::string &name) {
        detail::call(hoist_symbols_add_system_library, handle_.get(), detail::text(name));
        return *this;
    }
    Symbols &callback(Find find) {
        auto asked = std::make_unique<Asked>();
        asked->find = std::move(find);
        detail::call(hoist_symbols_add_callback, handle_.get(), &Asked::ask, static_cast<void *>(asked.get()));
        asked_.push_back(std::move(asked));
        return *this;
    }
    /** A function of this program. */
    template <typename F, std::enable_if_t<std::is_function_v<F>, int> = 0> Symbols &define(const std::string &name, F *function) {
        return define(name, reinterpret_cast<std::uintptr_t>(function), HOIST_DEFINITION_FUNCTION);
    }
    /** A variable of this program. */
    template <typename T, std::enable_if_t<!std::is_function_v<T>, int> = 0> Symbols &define(const std::string &name, T *variable) {
        return define(name, reinterpret_cast<std::uintptr_t>(variable), HOIST_DEFINITION_UNKNOWN);
    }
    Symbols &define(const std::string &name, std::uint64_t address, std::uint32_t kind = HOIST_DEFINITION_UNKNOWN) {
        detail::call(hoist_symbols_define, handle_.get(), detail::text(name), address, kind);
        return *this;
    }
    /** Of the process and of the libraries of the system that are in the list so far. */
    Symbols &copy_relocations(bool are_wanted) {
        detail::call(hoist_symbols_set_copy_relocations, handle_.get(), are_wanted);
        return *this;
    }
    inline Symbols &module(const Module &module);
    inline Symbols &library(const Library &library);
    Symbols &archive_file(const std::string &path) {
        detail::call(hoist_symbols_add_archive_file, handle_.get(), detail::text(path));
        return *this;
    }
    Symbols &archive_memory(Bytes bytes) {
        detail::call(hoist_symbols_add_archive_memory, handle_.get(), static_cast<const void *>(bytes.data()), bytes.size());
        return *this;
    }
    const hoist_symbols *get() const noexcept { return handle_.get(); }

    /** Does what asks these symbols, and throws what a callback has thrown meanwhile. */
    template <typename W> auto asking(W work) const {
        detail::needed(handle_.get(), "symbols");
        try {
            auto result = work();
            rethrow();
            return result;
        } catch (...) {
            rethrow();
            throw;
        }
    }

private:
    struct Asked {
        Find find;
        std::exception_ptr thrown;

        static bool ask(void *context, const char *name, hoist_definition *definition) noexcept {
            auto *asked = static_cast<Asked *>(context);
            try {
                if (const auto found = asked->thrown == nullptr ? asked->find(name) : std::nullopt) {
                    *definition = *found;
                    return true;
                }
            } catch (...) {
                asked->thrown = std::current_exception();
            }
            return false;
        }
    };

    /** Throws what the first has thrown; nothing is left for a later load. */
    void rethrow() const {
        std::exception_ptr first;
        for (const auto &asked : asked_) {
            auto thrown = std::exchange(asked->thrown, nullptr);
            first = first != nullptr ? first : thrown;
        }
        if (first != nullptr) {
            std::rethrow_exception(first);
        }
    }

    std::vector<std::unique_ptr<Asked>> asked_;
    detail::Handle<hoist_symbols, hoist_symbols_free> handle_;
};

/** Objects in memory: hoist_module. */
class Module {
public:
    explicit Module(hoist_module *taken = nullptr) noexcept : handle_(taken) {}
    bool needs_initialization() const noexcept { return hoist_module_needs_initialization(handle_.get()); }
    void initialize() const { detail::call(hoist_module_initialize, handle_.get()); }
    /** A function: module.function<int(int)>("twice")(21). */
    template <typename F> F *function(const std::string &name) const {
        return detail::typed<F>(detail::made<hoist_function>(hoist_module_function, handle_.get(), detail::text(name)));
    }
    /** A variable: *module.variable<int>("count"). */
    template <typename T> T *variable(const std::string &name) const { return static_cast<T *>(address(name)); }
    void *address(const std::string &name) const {
        return detail::made<void *>(hoist_module_address, handle_.get(), detail::text(name));
    }
    /** All symbols that have an address; text in them is good as long as the module. */
    std::vector<hoist_module_symbol_row> symbols() const {
        return detail::rows<hoist_module_symbol_row>(handle_.get(), hoist_module_symbol_count(handle_.get()), hoist_module_symbol);
    }
    std::vector<hoist_module_section_row> sections() const {
        return detail::rows<hoist_module_section_row>(handle_.get(), hoist_module_section_count(handle_.get()), hoist_module_section);
    }
    /** The symbol that an address is in, and how many bytes behind its start; nothing if it is in none. */
    std::optional<std::pair<hoist_module_symbol_row, std::uint64_t>> symbol_at(const void *address) const {
        std::pair<hoist_module_symbol_row, std::uint64_t> found{};
        hoist_error *error = nullptr;
        const hoist_status status = hoist_module_symbol_at(handle_.get(), address, &found.first, &found.second, &error);
        if (status == HOIST_STATUS_NOT_FOUND) {
            hoist_error_free(error);
            return std::nullopt;
        }
        if (status != HOIST_STATUS_OK) {
            throw Error(status, error);
        }
        return found;
    }
    /** Stretches of memory of one permission. */
    std::vector<hoist_module_segment_row> segments() const {
        return detail::rows<hoist_module_segment_row>(handle_.get(), hoist_module_segment_count(handle_.get()), hoist_module_segment);
    }
    /** The symbol that is called so in the source: "space::name(int)", or "space::name". */
    void *find_demangled(const std::string &name) const {
        return detail::made<void *>(hoist_module_find_demangled, handle_.get(), detail::text(name));
    }
    std::uint64_t bytes_in_huge_pages() const {
        return detail::made<std::uint64_t>(hoist_module_bytes_in_huge_pages, handle_.get());
    }
    /** Address and size of the memory that it occupies. */
    std::pair<void *, std::uint64_t> extent() const { return detail::extent(hoist_module_extent, handle_.get()); }
    hoist_module_sizes_row sizes() const { return detail::made<hoist_module_sizes_row>(hoist_module_sizes, handle_.get()); }
    const hoist_module *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<hoist_module, hoist_module_free> handle_;
};

inline Objects &Objects::keeping_data(Bytes bytes, const Module &old, const std::string &label) {
    const void *data = bytes.data();
    detail::call(hoist_objects_add_keeping_data, handle_.get(), detail::text(label), data, bytes.size(), old.get());
    return *this;
}

/** A function in the place of another one, until this goes: hoist_replacement. */
class Replacement {
public:
    Replacement() noexcept = default;
    /** Puts the function of `replacing` in the place of that of `module`. */
    Replacement(const Module &module, const std::string &name, const Module &replacing)
        : handle_(detail::made<hoist_replacement *>(hoist_module_replace, module.get(), detail::text(name), replacing.get())) {}
    /** The same with a function of this program. */
    template <typename F, typename = std::enable_if_t<std::is_function_v<F>>>
    Replacement(const Module &module, const std::string &name, F *function)
        : handle_(detail::made<hoist_replacement *>(hoist_module_redirect, module.get(), detail::text(name),
                                                    reinterpret_cast<hoist_function>(function))) {}

private:
    detail::Handle<hoist_replacement, hoist_replacement_free> handle_;
};

/** How objects are loaded: hoist_loader. */
class Loader {
public:
    Loader() : handle_(hoist_loader_new()) {}
    Loader &dual_mapping(bool is_wanted) { return set(hoist_loader_set_dual_mapping, is_wanted); }
    Loader &huge_pages(bool are_wanted) { return set(hoist_loader_set_huge_pages, are_wanted); }
    Loader &replaceable(bool are_functions) { return set(hoist_loader_set_replaceable, are_functions); }
    Loader &relax(bool is_wanted) { return set(hoist_loader_set_relax, is_wanted); }
    Loader &reuse_memory(bool is_wanted) { return set(hoist_loader_set_reuse_memory, is_wanted); }
    Loader &limit(std::uint64_t bytes) { return set(hoist_loader_set_limit, bytes); }
    Loader &arena() { return set(hoist_loader_use_arena); }
    Loader &gdb() { return set(hoist_loader_tell_gdb); }
    Loader &perf() { return set(hoist_loader_tell_perf); }
    Loader &jitdump(const std::string &folder) { return set(hoist_loader_tell_jitdump, detail::text(folder)); }
    /** Its functions must not throw. */
    Loader &tell(const hoist_observer &observer) { return set(hoist_loader_tell, &observer); }
    /** Loads objects, with the symbols of the process. */
    Module load(const Objects &objects) const {
        const hoist_symbols *process = nullptr;
        return Module(detail::made<hoist_module *>(hoist_loader_load, used(), objects.get(), process));
    }
    Module load(const Objects &objects, const Symbols &symbols) const {
        return symbols.asking([&] {
            return Module(detail::made<hoist_module *>(hoist_loader_load, used(), objects.get(), symbols.get()));
        });
    }
    const hoist_loader *get() const noexcept { return handle_.get(); }

private:
    template <typename F, typename... A> Loader &set(F function, A... arguments) {
        detail::call(function, handle_.get(), arguments...);
        return *this;
    }
    const hoist_loader *used() const { return detail::needed(handle_.get(), "loader"); }
    detail::Handle<hoist_loader, hoist_loader_free> handle_;
};

/** Loads one object, with default options and the symbols of the process. */
inline Module load_file(const std::string &path) {
    return Module(detail::made<hoist_module *>(hoist_load_file, detail::text(path)));
}

/** The same of bytes. */
inline Module load_memory(Bytes bytes, const std::string &label = "memory") {
    const void *data = bytes.data();
    return Module(detail::made<hoist_module *>(hoist_load_memory, detail::text(label), data, bytes.size()));
}

/** A shared library in memory: hoist_library. */
class Library {
public:
    /** `limit`: bytes of memory that it may take, 0 for what the size of the file explains. */
    static Library open_file(const std::string &path, std::uint64_t limit = 0) { return from_file(path, nullptr, limit); }
    static Library open_file(const std::string &path, const Symbols &symbols, std::uint64_t limit = 0) {
        return symbols.asking([&] { return from_file(path, symbols.get(), limit); });
    }
    static Library open_memory(Bytes bytes, std::uint64_t limit = 0) { return from_memory(bytes, nullptr, limit); }
    static Library open_memory(Bytes bytes, const Symbols &symbols, std::uint64_t limit = 0) {
        return symbols.asking([&] { return from_memory(bytes, symbols.get(), limit); });
    }
    template <typename F> F *function(const std::string &name) const {
        return detail::typed<F>(detail::made<hoist_function>(hoist_library_function, handle_.get(), detail::text(name)));
    }
    /** The function of a version. */
    template <typename F> F *function(const std::string &name, const std::string &version) const {
        return detail::typed<F>(
            detail::made<hoist_function>(hoist_library_function_version, handle_.get(), detail::text(name), detail::text(version)));
    }
    void *address(const std::string &name) const {
        return detail::made<void *>(hoist_library_address, handle_.get(), detail::text(name));
    }
    std::string name() const { return hoist_library_name(handle_.get()); }
    /** The name of the function that an address is in, and how many bytes behind its start; nothing if it is in none. */
    std::optional<std::pair<const char *, std::uint64_t>> symbol_at(const void *address) const {
        std::pair<const char *, std::uint64_t> found{};
        hoist_error *error = nullptr;
        const hoist_status status = hoist_library_symbol_at(handle_.get(), address, &found.first, &found.second, &error);
        if (status == HOIST_STATUS_NOT_FOUND) {
            hoist_error_free(error);
            return std::nullopt;
        }
        if (status != HOIST_STATUS_OK) {
            throw Error(status, error);
        }
        return found;
    }
    /** Address and size of the memory that it occupies. */
    std::pair<void *, std::uint64_t> extent() const { return detail::extent(hoist_library_extent, handle_.get()); }
    const hoist_library *get() const noexcept { return handle_.get(); }

private:
    friend class LibraryLoader;
    explicit Library(hoist_library *taken) noexcept : handle_(taken) {}
    static Library from_file(const std::string &path, const hoist_symbols *symbols, std::uint64_t limit) {
        return Library(detail::made<hoist_library *>(hoist_library_open_file, detail::text(path), symbols, limit));
    }
    static Library from_memory(Bytes bytes, const hoist_symbols *symbols, std::uint64_t limit) {
        const void *data = bytes.data();
        return Library(detail::made<hoist_library *>(hoist_library_open_memory, data, bytes.size(), symbols, limit));
    }
    detail::Handle<hoist_library, hoist_library_free> handle_;
};

/** How shared libraries are loaded: hoist_library_loader. */
class LibraryLoader {
public:
    /** A library that is needed: one that is loaded, or bytes, which are looked at until the load asks again or ends. */
    using Needed = std::variant<const Library *, Bytes>;
    /** Says what is needed by a name, or that it does not know. What it throws is thrown by the load that asked. */
    using Find = std::function<std::optional<Needed>(const char *name)>;

    LibraryLoader() : handle_(hoist_library_loader_new()) {}
    LibraryLoader &lazy(bool is_wanted) { return set(hoist_library_loader_set_lazy, is_wanted); }
    LibraryLoader &limit(std::uint64_t bytes) { return set(hoist_library_loader_set_limit, bytes); }
    LibraryLoader &origin(const std::string &folder) { return set(hoist_library_loader_set_origin, detail::text(folder)); }
    LibraryLoader &needed(Find find) {
        auto asked = std::make_shared<Asked>();
        asked->find = std::move(find);
        set(hoist_library_loader_set_needed, &Asked::ask, static_cast<void *>(asked.get()));
        asked_ = std::move(asked);
        return *this;
    }
    LibraryLoader &gdb() { return set(hoist_library_loader_tell_gdb); }
    LibraryLoader &perf() { return set(hoist_library_loader_tell_perf); }
    LibraryLoader &jitdump(const std::string &folder) { return set(hoist_library_loader_tell_jitdump, detail::text(folder)); }
    /** Its functions must not throw. */
    LibraryLoader &tell(const hoist_observer &observer) { return set(hoist_library_loader_tell, &observer); }

    Library open_file(const std::string &path) const {
        return asking([&] { return file(path, nullptr); });
    }
    Library open_file(const std::string &path, const Symbols &symbols) const {
        return asking([&] { return symbols.asking([&] { return file(path, symbols.get()); }); });
    }
    Library open_memory(Bytes bytes) const {
        return asking([&] { return memory(bytes, nullptr); });
    }
    Library open_memory(Bytes bytes, const Symbols &symbols) const {
        return asking([&] { return symbols.asking([&] { return memory(bytes, symbols.get()); }); });
    }
    const hoist_library_loader *get() const noexcept { return handle_.get(); }

private:
    struct Asked {
        Find find;
        std::exception_ptr thrown;

        static bool ask(void *context, const char *name, hoist_needed_library *needed) noexcept {
            auto *asked = static_cast<Asked *>(context);
            try {
                const std::optional<Needed> found = asked->thrown == nullptr ? asked->find(name) : std::nullopt;
                if (!found) {
                    return false;
                }
                if (const auto *library = std::get_if<const Library *>(&*found)) {
                    needed->library = detail::needed(detail::needed(*library, "a library that is needed")->get(), "a library that is needed");
                } else {
                    const Bytes bytes = std::get<Bytes>(*found);
                    needed->data = bytes.data();
                    needed->size = bytes.size();
                }
                return true;
            } catch (...) {
                asked->thrown = std::current_exception();
            }
            return false;
        }
    };

    /** Does what asks for libraries, and throws what the function has thrown meanwhile, which may set another one. */
    template <typename W> Library asking(W work) const {
        const std::shared_ptr<Asked> asked = asked_;
        const auto rethrow = [&] {
            if (asked != nullptr) {
                if (auto thrown = std::exchange(asked->thrown, nullptr)) {
                    std::rethrow_exception(thrown);
                }
            }
        };
        try {
            Library result = work();
            rethrow();
            return result;
        } catch (...) {
            rethrow();
            throw;
        }
    }
    Library file(const std::string &path, const hoist_symbols *symbols) const {
        return Library(detail::made<hoist_library *>(hoist_library_loader_open_file, handle_.get(), detail::text(path), symbols));
    }
    Library memory(Bytes bytes, const hoist_symbols *symbols) const {
        const void *data = bytes.data();
        return Library(
            detail::made<hoist_library *>(hoist_library_loader_open_memory, handle_.get(), data, bytes.size(), symbols));
    }
    template <typename F, typename... A> LibraryLoader &set(F function, A... arguments) {
        detail::call(function, handle_.get(), arguments...);
        return *this;
    }
    std::shared_ptr<Asked> asked_;
    detail::Handle<hoist_library_loader, hoist_library_loader_free> handle_;
};

inline Symbols &Symbols::module(const Module &module) {
    detail::call(hoist_symbols_add_module, handle_.get(), module.get());
    return *this;
}

inline Symbols &Symbols::library(const Library &library) {
    detail::call(hoist_symbols_add_library, handle_.get(), library.get());
    return *this;
}

/** Objects relocated for an address, as bytes: hoist_image. */
class Image {
public:
    Bytes bytes() const noexcept {
        return {static_cast<const unsigned char *>(hoist_image_data(handle_.get())), hoist_image_size(handle_.get())};
    }
    std::uint64_t base() const noexcept { return hoist_image_base(handle_.get()); }
    std::uint64_t address(const std::string &name) const {
        return detail::made<std::uint64_t>(hoist_image_address, handle_.get(), detail::text(name));
    }
    std::vector<hoist_image_symbol_row> symbols() const {
        return detail::rows<hoist_image_symbol_row>(handle_.get(), hoist_image_symbol_count(handle_.get()), hoist_image_symbol);
    }
    std::vector<hoist_image_segment_row> segments() const {
        return detail::rows<hoist_image_segment_row>(handle_.get(), hoist_image_segment_count(handle_.get()), hoist_image_segment);
    }
    explicit Image(hoist_image *taken = nullptr) noexcept : handle_(taken) {}

private:
    detail::Handle<hoist_image, hoist_image_free> handle_;
};

/** Links objects, of any of the machines, for an address: hoist_link. */
inline Image link(const Objects &objects, std::uint64_t base, std::uint32_t flags = 0, std::uint64_t limit = 0) {
    const hoist_symbols *none = nullptr;
    return Image(detail::made<hoist_image *>(hoist_link, objects.get(), none, base, flags, limit));
}

inline Image link(const Objects &objects, const Symbols &symbols, std::uint64_t base, std::uint32_t flags = 0,
                  std::uint64_t limit = 0) {
    return symbols.asking(
        [&] { return Image(detail::made<hoist_image *>(hoist_link, objects.get(), symbols.get(), base, flags, limit)); });
}

/** An ELF file, to look at: hoist_file. */
class File {
public:
    static File open(const std::string &path) { return File(detail::made<hoist_file *>(hoist_file_open, detail::text(path))); }
    static File parse(Bytes bytes, const std::string &label = "memory") {
        const void *data = bytes.data();
        return File(detail::made<hoist_file *>(hoist_file_parse, detail::text(label), data, bytes.size()));
    }
    hoist_file_info info() const { return detail::made<hoist_file_info>(hoist_file_get_info, handle_.get()); }
    std::vector<hoist_file_section_row> sections() const {
        return detail::rows<hoist_file_section_row>(handle_.get(), hoist_file_section_count(handle_.get()), hoist_file_section);
    }
    std::size_t find_section(const std::string &name) const {
        return detail::made<std::size_t>(hoist_file_find_section, handle_.get(), detail::text(name));
    }
    Bytes section_data(std::size_t index) const {
        const void *data = nullptr;
        std::size_t size = 0;
        detail::call(hoist_file_section_data, handle_.get(), index, &data, &size);
        return {static_cast<const unsigned char *>(data), size};
    }
    std::vector<hoist_file_segment_row> segments() const {
        return detail::rows<hoist_file_segment_row>(handle_.get(), hoist_file_segment_count(handle_.get()), hoist_file_segment);
    }
    std::vector<hoist_file_symbol_row> symbols(std::uint32_t table = HOIST_SYMBOL_TABLE) const {
        return numbered<hoist_file_symbol_row>(hoist_file_symbol_count, hoist_file_symbol, table);
    }
    /** The number of a symbol in a table. */
    std::size_t find_symbol(const std::string &name, std::uint32_t table = HOIST_SYMBOL_TABLE) const {
        return detail::made<std::size_t>(hoist_file_find_symbol, handle_.get(), table, detail::text(name));
    }
    std::vector<hoist_file_relocation_row> relocations(std::size_t section) const {
        return numbered<hoist_file_relocation_row>(hoist_file_relocation_count, hoist_file_relocation, section);
    }

private:
    explicit File(hoist_file *taken) noexcept : handle_(taken) {}
    template <typename Row, typename C, typename F, typename T> std::vector<Row> numbered(C counting, F function, T table) const {
        const auto count = detail::made<std::size_t>(counting, handle_.get(), table);
        std::vector<Row> found;
        found.reserve(count);
        for (std::size_t index = 0; index < count; ++index) {
            found.push_back(detail::made<Row>(function, handle_.get(), table, index));
        }
        return found;
    }
    detail::Handle<hoist_file, hoist_file_free> handle_;
};

/** An archive, to look at: hoist_archive. */
class Archive {
public:
    static Archive open(const std::string &path) {
        return Archive(detail::made<hoist_archive *>(hoist_archive_open, detail::text(path)));
    }
    static Archive parse(Bytes bytes, const std::string &label = "memory") {
        const void *data = bytes.data();
        return Archive(detail::made<hoist_archive *>(hoist_archive_parse, detail::text(label), data, bytes.size()));
    }
    std::size_t size() const noexcept { return hoist_archive_member_count(handle_.get()); }
    /** Name and bytes of a member, good as long as the archive. */
    std::pair<const char *, Bytes> member(std::size_t index) const {
        const char *name = nullptr;
        const void *data = nullptr;
        std::size_t size = 0;
        detail::call(hoist_archive_member, handle_.get(), index, &name, &data, &size);
        return {name, hoist::bytes(data, size)};
    }

private:
    explicit Archive(hoist_archive *taken) noexcept : handle_(taken) {}
    detail::Handle<hoist_archive, hoist_archive_free> handle_;
};

/** Code for NVIDIA GPUs: hoist_cubin. */
class Cubin {
public:
    static Cubin open(const std::string &path) { return Cubin(detail::made<hoist_cubin *>(hoist_cubin_open, detail::text(path))); }
    static Cubin parse(Bytes bytes, const std::string &label = "memory") {
        const void *data = bytes.data();
        return Cubin(detail::made<hoist_cubin *>(hoist_cubin_parse, detail::text(label), data, bytes.size()));
    }
    /** Links relocatable cubins; 0 stands for the architecture of the first. */
    static Buffer link(const Objects &objects, std::uint32_t sm = 0) {
        return Buffer(detail::made<hoist_buffer *>(hoist_cubin_link, objects.get(), sm));
    }
    /** The same with the kernels alone that have one of these texts in their name. */
    static Buffer link(const Objects &objects, View<const char *const> kernels, std::uint32_t sm = 0) {
        return Buffer(detail::made<hoist_buffer *>(hoist_cubin_link_kernels, objects.get(), sm, kernels.data(), kernels.size()));
    }
    /** Puts relocatable cubins together into one that is relocatable still. */
    static Buffer link_relocatable(const Objects &objects, std::uint32_t sm = 0) {
        return Buffer(detail::made<hoist_buffer *>(hoist_cubin_link_relocatable, objects.get(), sm));
    }
    hoist_cubin_info info() const { return detail::made<hoist_cubin_info>(hoist_cubin_get_info, handle_.get()); }
    std::vector<hoist_cubin_kernel_row> kernels() const {
        return detail::rows<hoist_cubin_kernel_row>(handle_.get(), hoist_cubin_kernel_count(handle_.get()), hoist_cubin_kernel);
    }
    std::size_t find_kernel(const std::string &name) const {
        return detail::made<std::size_t>(hoist_cubin_find_kernel, handle_.get(), detail::text(name));
    }
    hoist_cubin_kernel_row kernel(std::size_t index) const {
        return detail::made<hoist_cubin_kernel_row>(hoist_cubin_kernel, handle_.get(), index);
    }
    std::vector<hoist_cubin_parameter_row> parameters(std::size_t of) const {
        return numbered<hoist_cubin_parameter_row>(of, kernel(of).parameter_count, hoist_cubin_parameter);
    }
    std::vector<hoist_cubin_attribute_row> attributes(std::size_t of) const {
        return numbered<hoist_cubin_attribute_row>(of, kernel(of).attribute_count, hoist_cubin_attribute);
    }
    hoist_cubin_occupancy_row occupancy(std::size_t of, std::uint32_t threads, std::uint64_t dynamic_shared = 0) const {
        return detail::made<hoist_cubin_occupancy_row>(hoist_cubin_occupancy, handle_.get(), of, threads, dynamic_shared);
    }

private:
    explicit Cubin(hoist_cubin *taken) noexcept : handle_(taken) {}
    template <typename Row, typename F> std::vector<Row> numbered(std::size_t of, std::size_t count, F function) const {
        std::vector<Row> found;
        found.reserve(count);
        for (std::size_t index = 0; index < count; ++index) {
            found.push_back(detail::made<Row>(function, handle_.get(), of, index));
        }
        return found;
    }
    detail::Handle<hoist_cubin, hoist_cubin_free> handle_;
};

/** Device code inside of any file: hoist_fatbin. */
class Fatbin {
public:
    static Fatbin open(const std::string &path) { return Fatbin(detail::made<hoist_fatbin *>(hoist_fatbin_open, detail::text(path))); }
    static Fatbin parse(Bytes bytes, const std::string &label = "memory") {
        const void *data = bytes.data();
        return Fatbin(detail::made<hoist_fatbin *>(hoist_fatbin_parse, detail::text(label), data, bytes.size()));
    }
    std::size_t region_count() const noexcept { return hoist_fatbin_region_count(handle_.get()); }
    std::vector<hoist_fatbin_entry_row> entries() const {
        return detail::rows<hoist_fatbin_entry_row>(handle_.get(), hoist_fatbin_entry_count(handle_.get()), hoist_fatbin_entry);
    }
    Buffer unpack(std::size_t index, std::size_t limit = 0) const {
        return Buffer(detail::made<hoist_buffer *>(hoist_fatbin_unpack, handle_.get(), index, limit));
    }
    /** The number of the image that a driver takes, and its bytes. */
    std::pair<std::size_t, Buffer> select(std::size_t region, std::uint32_t sm, std::uint16_t driver_major,
                                          std::uint16_t driver_minor) const {
        std::size_t index = 0;
        hoist_buffer *image = nullptr;
        detail::call(hoist_fatbin_select, handle_.get(), region, sm, driver_major, driver_minor, &index, &image);
        return {index, Buffer(image)};
    }
    Buffer build(View<const std::size_t> indices) const {
        return Buffer(detail::made<hoist_buffer *>(hoist_fatbin_build, handle_.get(), indices.data(), indices.size()));
    }
    /** The whole file with a cubin or PTX in the place of an image; without `compression`, compressed as that one was. */
    Buffer replace(std::size_t index, Bytes code, const char *compression = nullptr, std::uint32_t flags = 0) const {
        const void *data = code.data();
        return Buffer(detail::made<hoist_buffer *>(hoist_fatbin_replace, handle_.get(), index, data, code.size(), compression, flags));
    }
    /** The whole file with these images only. */
    Buffer prune(View<const std::size_t> indices) const {
        return Buffer(detail::made<hoist_buffer *>(hoist_fatbin_prune, handle_.get(), indices.data(), indices.size()));
    }

private:
    explicit Fatbin(hoist_fatbin *taken) noexcept : handle_(taken) {}
    detail::Handle<hoist_fatbin, hoist_fatbin_free> handle_;
};

class DeviceMemory;
class DeviceCode;

/** An NVIDIA GPU: hoist_device. */
class Device {
public:
    /** How many there are; throws NO_DEVICE where there is no driver or none. */
    static std::uint32_t count() { return detail::made<std::uint32_t>(hoist_device_count); }
    static Device open(std::uint32_t ordinal = 0) { return Device(detail::made<hoist_device *>(hoist_device_open, ordinal)); }
    hoist_device_info info() const { return detail::made<hoist_device_info>(hoist_device_get_info, handle_.get()); }
    inline DeviceMemory memory(std::uint64_t size) const;
    inline DeviceCode load_file(const std::string &path, std::uint32_t flags = 0) const;
    inline DeviceCode load_memory(Bytes bytes, const std::string &label = "memory", std::uint32_t flags = 0) const;
    void synchronize() const { detail::call(hoist_device_synchronize, handle_.get()); }
    void reset() { detail::call(hoist_device_reset, handle_.get()); }
    const hoist_device *get() const noexcept { return handle_.get(); }

private:
    explicit Device(hoist_device *taken) noexcept : handle_(taken) {}
    detail::Handle<hoist_device, hoist_device_free> handle_;
};

/** Memory of a GPU: hoist_device_memory. */
class DeviceMemory {
public:
    explicit DeviceMemory(hoist_device_memory *taken = nullptr) noexcept : handle_(taken) {}
    std::uint64_t size() const noexcept { return hoist_device_memory_size(handle_.get()); }
    std::uint64_t address() const noexcept { return hoist_device_memory_address(handle_.get()); }
    /** Copies elements to the device: an array, a std::vector ... */
    template <typename T> void write(View<const T> elements, std::uint64_t offset = 0) {
        static_assert(std::is_trivially_copyable_v<T>, "what can be copied as bytes");
        const void *data = elements.data();
        detail::call(hoist_device_memory_write, handle_.get(), offset, data, elements.size() * sizeof(T));
    }
    template <typename C> void write(const C &container, std::uint64_t offset = 0) {
        write(View<const typename C::value_type>(container), offset);
    }
    /** Copies elements from the device. */
    template <typename T> std::vector<T> read(std::size_t count, std::uint64_t offset = 0) const {
        static_assert(std::is_trivially_copyable_v<T>, "what can be copied as bytes");
        std::vector<T> found(count);
        void *data = found.data();
        detail::call(hoist_device_memory_read, handle_.get(), offset, data, count * sizeof(T));
        return found;
    }
    /** Copies bytes of another memory, or of this one elsewhere. */
    void copy(const DeviceMemory &from, std::uint64_t size, std::uint64_t from_offset = 0, std::uint64_t offset = 0) {
        detail::call(hoist_device_memory_copy, from.get(), from_offset, handle_.get(), offset, size);
    }
    const hoist_device_memory *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<hoist_device_memory, hoist_device_memory_free> handle_;
};

/** A kernel of a GPU: hoist_kernel. */
class Kernel {
public:
    explicit Kernel(hoist_kernel *taken = nullptr) noexcept : handle_(taken) {}
    /** Launches it. Arguments are memory, numbers and structures; the seconds it took, if the launch waits. */
    template <typename... A> double launch(const hoist_launch &how, const A &...arguments) const {
        const hoist_kernel_argument given[sizeof...(A) + 1] = {argument(arguments)..., hoist_kernel_argument{}};
        double seconds = 0;
        const hoist_kernel_argument *first = given;
        const hoist_launch *launch = &how;
        detail::call(hoist_kernel_launch, handle_.get(), launch, first, sizeof...(A), &seconds);
        return seconds;
    }
    const hoist_kernel *get() const noexcept { return handle_.get(); }

private:
    template <typename T> static hoist_kernel_argument argument(const T &value) {
        hoist_kernel_argument made{};
        if constexpr (std::is_same_v<T, DeviceMemory>) {
            made.memory = detail::needed(value.get(), "memory");
        } else {
            static_assert(std::is_trivially_copyable_v<T>, "DeviceMemory, or what can be copied as bytes");
            static_assert(!std::is_pointer_v<T>, "kernels see DeviceMemory, not memory of this process");
            made.data = &value;
            made.size = sizeof value;
        }
        return made;
    }
    detail::Handle<hoist_kernel, hoist_kernel_free> handle_;
};

/** Code on a GPU: hoist_device_code. */
class DeviceCode {
public:
    explicit DeviceCode(hoist_device_code *taken = nullptr) noexcept : handle_(taken) {}
    Kernel kernel(const std::string &name) const {
        return Kernel(detail::made<hoist_kernel *>(hoist_kernel_open, handle_.get(), detail::text(name)));
    }
    /** Address on the device and size of a variable. */
    std::pair<std::uint64_t, std::uint64_t> variable(const std::string &name) const {
        std::pair<std::uint64_t, std::uint64_t> found{};
        detail::call(hoist_device_code_variable, handle_.get(), detail::text(name), &found.first, &found.second);
        return found;
    }
    const hoist_device_code *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<hoist_device_code, hoist_device_code_free> handle_;
};

inline DeviceMemory Device::memory(std::uint64_t size) const {
    return DeviceMemory(detail::made<hoist_device_memory *>(hoist_device_memory_new, handle_.get(), size));
}

inline DeviceCode Device::load_file(const std::string &path, std::uint32_t flags) const {
    return DeviceCode(detail::made<hoist_device_code *>(hoist_device_code_load_file, handle_.get(), detail::text(path), flags));
}

inline DeviceCode Device::load_memory(Bytes bytes, const std::string &label, std::uint32_t flags) const {
    const void *data = bytes.data();
    return DeviceCode(detail::made<hoist_device_code *>(hoist_device_code_load_memory, handle_.get(), detail::text(label), data,
                                                        bytes.size(), flags));
}

} // namespace hoist

#if __cplusplus >= 202002L
/** What a view has is there without it. */
template <typename T> inline constexpr bool std::ranges::enable_borrowed_range<hoist::View<T>> = true;
#endif

#endif /* HOIST_HPP */
