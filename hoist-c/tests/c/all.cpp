// all PLUGIN.o VERSION1.o VERSION2.o KERNELS.cubin FATBIN LIBBASE.a LIBBASE.so KERNELS_90a.cubin LIBUSER.so
// LIBVERSIONS.so: hoist.hpp.
#include <hoist.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);  \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

namespace {

int host_value(int which) { return which * 100; }
int nine(const char *, ...) { return 9; }

std::vector<unsigned char> read(const char *path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <typename W> hoist::Error thrown(W work) {
    try {
        work();
    } catch (const hoist::Error &error) {
        return error;
    }
    std::fprintf(stderr, "nothing was thrown\n");
    std::exit(1);
}

struct Own {};

void modules(char **argv) {
    const hoist::Error undefined = thrown([&] { hoist::load_file(argv[1]); });
    CHECK(undefined.status() == HOIST_STATUS_UNDEFINED_SYMBOL && undefined.symbol() == "host_value");
    CHECK(undefined.file() == argv[1] && undefined.offset().has_value() && !undefined.maximum().has_value());
    CHECK(std::string(undefined.what()).find("host_value") != std::string::npos);
    CHECK(thrown([] { hoist::load_file("/absent"); }).os_error() == 2);

    int asked = 0;
    hoist::Symbols symbols;
    symbols.callback([&](const char *name) -> std::optional<hoist_definition> {
        ++asked;
        if (std::strcmp(name, "host_value") != 0) {
            return std::nullopt;
        }
        return hoist_definition{reinterpret_cast<std::uintptr_t>(host_value), HOIST_DEFINITION_FUNCTION, 0};
    });
    symbols.process();
    hoist::Module module = hoist::Loader().reuse_memory(true).load(hoist::Objects().file(argv[1]), symbols);
    CHECK(asked > 0 && module.function<int(int)>("twice")(21) == 42 && module.function<int()>("of_host")() == 704);
    int *count = module.variable<int>("count");
    CHECK(*count == 3 && module.function<int()>("next")() == 4 && *count == 4);
    int found = 0;
    for (const auto &symbol : module.symbols()) {
        if (std::string(symbol.name) == "twice") {
            ++found;
            const auto at = module.symbol_at(static_cast<char *>(symbol.address) + 1);
            CHECK(at && at->second == 1 && std::string(at->first.name) == "twice");
        }
    }
    CHECK(found == 1 && !module.symbol_at(&found) && !module.sections().empty() && module.sizes().code > 0);
    CHECK(thrown([&] { module.address("absent"); }).status() == HOIST_STATUS_NOT_FOUND);
    CHECK(module.find_demangled("count") == count && module.bytes_in_huge_pages() == 0);
    const auto extent = module.extent();
    std::uint64_t executable = 0;
    for (const auto &segment : module.segments()) {
        const auto *start = static_cast<const char *>(segment.address);
        CHECK(start >= extent.first && start + segment.size <= static_cast<const char *>(extent.first) + extent.second);
        CHECK((segment.flags & 3) != 3); // writable, or executable
        executable += (segment.flags & 1) != 0 ? segment.size : 0;
    }
    CHECK(executable >= module.sizes().code && module.sizes().code > 0);

    // moved: the new one has it, the old one throws
    hoist::Module moved = std::move(module);
    CHECK(moved.function<int(int)>("twice")(4) == 8);
    CHECK(thrown([&] { module.address("count"); }).status() == HOIST_STATUS_INVALID_ARGUMENT); // NOLINT

    // what callbacks throw comes out of the load, the first of them, and of no later one
    bool is_thrown = true, is_caught = false;
    hoist::Symbols several;
    several.callback([&](const char *) -> std::optional<hoist_definition> {
        return is_thrown ? throw Own() : std::nullopt;
    });
    several.callback([&](const char *) -> std::optional<hoist_definition> {
        return is_thrown ? throw 7 : std::optional(hoist_definition{reinterpret_cast<std::uintptr_t>(host_value), HOIST_DEFINITION_FUNCTION, 0});
    });
    several.process();
    try {
        hoist::Loader().load(hoist::Objects().file(argv[1]), several);
    } catch (const Own &) {
        is_caught = true;
    }
    is_thrown = false;
    CHECK(is_caught && hoist::Loader().load(hoist::Objects().file(argv[1]), several).function<int()>("of_host")() == 704);

    // what a callback throws comes out of the load
    hoist::Symbols throwing;
    throwing.callback([](const char *) -> std::optional<hoist_definition> { throw Own(); });
    bool is_own = false;
    try {
        hoist::Loader().load(hoist::Objects().file(argv[1]), throwing);
    } catch (const Own &) {
        is_own = true;
    }
    CHECK(is_own);

    hoist::Symbols defined;
    defined.define("host_value", host_value).process();
    const auto bytes = read(argv[1]);
    const hoist::Module again = hoist::Loader().dual_mapping(true).load(hoist::Objects().memory(bytes, "plugin"), defined);
    CHECK(again.function<int()>("of_host")() == 704);
}

void replaced(char **argv) {
    hoist::Loader loader;
    loader.replaceable(true);
    const hoist::Module first = loader.load(hoist::Objects().file(argv[2]));
    int (*const version)() = first.function<int()>("version");
    {
        const auto bytes = read(argv[3]);
        const hoist::Module second =
            loader.load(hoist::Objects().keeping_data(bytes, first), hoist::Symbols().module(first).process());
        const hoist::Replacement replacement(first, "version", second);
        CHECK(version() == 2 && *first.variable<int>("calls") == 1);
    }
    CHECK(version() == 1 && *first.variable<int>("calls") == 2);
}

void files(char **argv) {
    const hoist::File file = hoist::File::open(argv[1]);
    CHECK(file.info().kind == 1 && file.segments().empty() && file.symbols().size() > 8);
    CHECK(std::string(file.symbols()[file.find_symbol("twice")].name) == "twice");
    CHECK(thrown([&] { file.find_symbol("absent"); }).status() == HOIST_STATUS_NOT_FOUND);
    CHECK(hoist::Objects().file(argv[1]).file(argv[6]).count() == 1);
    CHECK(hoist::version() == hoist_version());
    const auto index = file.find_section(".rodata");
    const hoist::Bytes data = file.section_data(index);
    CHECK(data.size() == file.sections()[index].size && data[0] == 'h');
    std::size_t relocations = 0;
    for (std::size_t section = 0; section < file.sections().size(); ++section) {
        relocations += file.relocations(section).size();
    }
    CHECK(relocations > 5);
    CHECK(thrown([] { hoist::File::parse(hoist::bytes("no", 2), "two"); }).file() == "two");

    const hoist::Image image = hoist::link(hoist::Objects().file(argv[2]), 0x10000);
    CHECK(image.base() == 0x10000 && image.address("version") >= 0x10000 && !image.segments().empty());
    CHECK(image.bytes().size() > 0 && !image.symbols().empty());

    const hoist::Archive archive = hoist::Archive::open(argv[6]);
    CHECK(archive.size() == 1 && std::string(archive.member(0).first) == "base.o");
    const auto bytes = read(argv[7]);
    const hoist::Library library = hoist::Library::open_memory(bytes);
    CHECK(library.name() == "libbase.so" && library.function<int(int)>("base")(4) == 40);
    const char *base = reinterpret_cast<const char *>(library.function<int(int)>("base"));
    const auto at = library.symbol_at(base + 1), once_more = library.symbol_at(base);
    CHECK(at && at->second == 1 && std::string(at->first) == "base" && once_more->first == at->first);
    CHECK(!library.symbol_at(argv));
    const auto extent = library.extent();
    CHECK(base >= extent.first && base < static_cast<const char *>(extent.first) + extent.second);
}

// What was moved from is used, texts have NUL inside, and nothing stands for a library: thrown before C takes it for something else.
void misused(char **argv) {
    const auto refused = [](auto work) { return thrown(work).status() == HOIST_STATUS_INVALID_ARGUMENT; };
    const auto bytes = read(argv[7]);
    hoist::Symbols symbols;
    const hoist::Symbols symbols_now = std::move(symbols);
    const hoist::Objects objects = std::move(hoist::Objects().file(argv[2]));
    CHECK(refused([&] { hoist::Loader().load(objects, symbols); }) && refused([&] { hoist::link(objects, symbols, 0x10000); }));
    CHECK(refused([&] { hoist::Library::open_file(argv[7], symbols); }) && refused([&] { hoist::Library::open_memory(bytes, symbols); }));
    CHECK(refused([&] { hoist::LibraryLoader().open_file(argv[7], symbols); }));
    CHECK(refused([&] { hoist::LibraryLoader().open_memory(bytes, symbols); }));
    CHECK(std::string(thrown([&] { hoist::Loader().load(objects, symbols); }).what()) == "symbols is NULL");
    hoist::Loader loader;
    const hoist::Loader loader_now = std::move(loader);
    CHECK(refused([&] { loader.load(objects); }) && refused([&] { loader.load(objects, symbols_now); }));
    hoist::Library library = hoist::Library::open_memory(bytes);
    const hoist::Library library_now = std::move(library);
    hoist::LibraryLoader libraries;
    for (const hoist::Library *none : {static_cast<const hoist::Library *>(nullptr), static_cast<const hoist::Library *>(&library)}) {
        libraries.needed([=](const char *) { return std::optional(hoist::LibraryLoader::Needed(none)); });
        CHECK(refused([&] { libraries.open_file(argv[9]); }));
    }
    hoist_launch how{};
    CHECK(refused([&] { hoist::Kernel().launch(how, hoist::DeviceMemory()); }));

    const std::string name("version\0", 8), path = argv[2] + std::string("\0.o", 3);
    const hoist::Module module = hoist::Loader().replaceable(true).load(objects);
    CHECK(refused([&] { module.function<int()>(name); }) && refused([&] { module.address(name); }));
    CHECK(refused([&] { hoist::load_file(path); }) && refused([&] { hoist::File::open(path); }));
    CHECK(refused([&] { hoist::Symbols().define(name, 1); }) && refused([&] { hoist::Objects().memory(bytes, name); }));
    CHECK(thrown([&] { module.address(name); }).info().kind == HOIST_STATUS_INVALID_ARGUMENT);

    // functions with any arguments, and bytes that go at the end of the statement
    hoist::Symbols().define("printf", &std::printf).define("twice", +[](int number) noexcept { return 2 * number; });
    const hoist::Replacement replacement(module, "version", nine);
    CHECK(module.function<int()>("version")() == 9 && hoist::load_memory(read(argv[2])).function<int()>("version")() == 1);
    const std::size_t kept[] = {0};
    CHECK(hoist::Fatbin::parse(hoist::Fatbin::open(argv[5]).build(kept).bytes()).entries().size() == 1);
}

bool tell_loaded(void *context, const char *name, const hoist_observed_function_row *, std::size_t count, void **) {
    static_cast<std::string *>(context)->append(count > 0 ? name : "nothing").append(" ");
    return true;
}

void libraries(char **argv) {
    const auto base = read(argv[7]);
    std::string names;
    hoist::LibraryLoader loader;
    loader.lazy(true).limit(std::uint64_t{1} << 24).origin("/").gdb();
    loader.tell({&names, tell_loaded, nullptr});
    loader.needed([&](const char *name) -> std::optional<hoist::LibraryLoader::Needed> {
        return std::strcmp(name, "libbase.so") == 0 ? std::optional(hoist::LibraryLoader::Needed(base)) : std::nullopt;
    });
    const hoist::Library user = loader.open_file(argv[9]);
    CHECK(user.function<int(int)>("used")(3) == 31 && names.find("libuser.so ") != std::string::npos);
    CHECK(names.find("libbase.so ") != std::string::npos);
    const hoist::Library loaded = hoist::Library::open_memory(base);
    loader.needed([&](const char *) { return std::optional(hoist::LibraryLoader::Needed(&loaded)); });
    CHECK(loader.open_file(argv[9], hoist::Symbols().process()).function<int(int)>("used")(4) == 41);
    loader.needed([](const char *) -> std::optional<hoist::LibraryLoader::Needed> { throw Own(); });
    bool is_own = false;
    try {
        const auto bytes = read(argv[9]);
        loader.open_memory(bytes);
    } catch (const Own &) {
        is_own = true;
    }
    CHECK(is_own);
    // a function may set another one, which the next load asks
    const std::string set(64, 'x');
    loader.needed([&, set](const char *name) {
        loader.needed([](const char *) -> std::optional<hoist::LibraryLoader::Needed> { throw Own(); });
        CHECK(set == std::string(64, 'x'));
        return std::strcmp(name, "libbase.so") == 0 ? std::optional(hoist::LibraryLoader::Needed(&loaded)) : std::nullopt;
    });
    CHECK(loader.open_file(argv[9]).function<int(int)>("used")(4) == 41);
    is_own = false;
    try {
        loader.open_file(argv[9]);
    } catch (const Own &) {
        is_own = true;
    }
    CHECK(is_own);
    const hoist::Library versions = hoist::Library::open_file(argv[10]);
    CHECK(versions.function<int()>("value")() == 2 && versions.function<int()>("value", "V_1")() == 1);
    CHECK(thrown([&] { versions.function<int()>("value", "V_9"); }).status() == HOIST_STATUS_NOT_FOUND);
    names.clear();
    hoist::Loader objects;
    objects.tell({&names, tell_loaded, nullptr}).load(hoist::Objects().file(argv[2]), hoist::Symbols().process().copy_relocations(true));
    CHECK(names == " ");
}

void gpus(char **argv) {
    const hoist::Cubin cubin = hoist::Cubin::open(argv[4]);
    CHECK(cubin.info().sm == 80 && cubin.kernels().size() > 3);
    const auto index = cubin.find_kernel("shared_memory");
    CHECK(cubin.kernel(index).shared > 0 && !cubin.attributes(index).empty() && cubin.occupancy(index, 128).warps > 0);
    CHECK(cubin.parameters(index).size() == cubin.kernel(index).parameter_count);

    const hoist::Fatbin fatbin = hoist::Fatbin::open(argv[5]);
    const auto entries = fatbin.entries();
    CHECK(fatbin.region_count() > 0 && fatbin.unpack(0).bytes().size() == entries[0].unpacked_size);
    const auto selected = fatbin.select(0, 90, 13, 0);
    CHECK(selected.first < entries.size() && !selected.second.bytes().empty());
    const std::vector<std::size_t> kept{0};
    CHECK(hoist::Fatbin::parse(fatbin.build(kept).bytes()).entries().size() == 1);
    CHECK(hoist::Fatbin::parse(fatbin.prune(kept).bytes()).entries().size() == 1);
    const hoist::Buffer code = fatbin.unpack(0);
    const hoist::Fatbin replaced = hoist::Fatbin::parse(fatbin.replace(0, code.bytes(), "none").bytes());
    CHECK(*replaced.entries()[0].compression == '\0' && replaced.entries()[0].stored_size == code.bytes().size());
    CHECK(thrown([&] { fatbin.replace(9, code.bytes()); }).maximum() == 0u);
}

// On the stub of the driver.
void devices(char **argv) {
    CHECK(hoist::Device::count() == 1);
    CHECK(thrown([] { hoist::Device::open(7); }).status() == HOIST_STATUS_NO_DEVICE);
    hoist::Device device = hoist::Device::open();
    CHECK(device.info().sm == 90);
    hoist::DeviceMemory numbers = device.memory(64), others = device.memory(64);
    numbers.write(std::vector<float>{1, 2, 3});
    others.copy(numbers, 8, 4);
    CHECK((others.read<float>(2) == std::vector<float>{2, 3}));
    const hoist::DeviceCode code = device.load_file(argv[8]);
    const hoist::Kernel kernel = code.kernel("local_memory");
    hoist_launch how{};
    how.grid[0] = 1;
    how.block[0] = 32;
    CHECK(kernel.launch(how, numbers, 7u) == 0);
    CHECK(thrown([&] { numbers.write(std::vector<float>{4}); }).status() == HOIST_STATUS_BUSY);
    device.synchronize();
    how.flags = HOIST_LAUNCH_WAIT;
    CHECK(kernel.launch(how, numbers, 7u) > 0);
    CHECK(thrown([&] { kernel.launch(how, numbers); }).status() == HOIST_STATUS_LAUNCH);
    const auto bytes = read(argv[8]);
    const hoist::DeviceCode own = device.load_memory(bytes, "kernels", HOIST_DEVICE_CODE_OWN_LOADER);
    CHECK(own.kernel("globals").launch(how) > 0);
    CHECK(thrown([&] { code.variable("absent"); }).symbol() == "absent");
    device.reset();
}

#if __cplusplus >= 202002L
std::size_t count(hoist::Bytes bytes) { return bytes.size(); }

void spans(char **argv) {
    auto bytes = read(argv[1]);
    const std::span<unsigned char> all(bytes);
    CHECK(count(all) == bytes.size() && count(all.first(4)) == 4 && count(all.first<4>()) == 4);
    CHECK(count(hoist::bytes(std::as_bytes(all))) == bytes.size());
    CHECK(hoist::File::parse(all, "span").info().kind == 1);
    const hoist::Image image = hoist::link(hoist::Objects().file(argv[2]), 0x10000);
    const std::span<const unsigned char> made = image.bytes();
    CHECK(made.data() == image.bytes().data() && made.size() == image.bytes().size());
    const std::span<unsigned char> writable = hoist::View<unsigned char>(bytes);
    CHECK(writable.data() == bytes.data());
}
#else
void spans(char **) {}
#endif

} // namespace

int main(int argc, char **argv) {
    CHECK(argc == 11);
    modules(argv);
    misused(argv);
    libraries(argv);
    replaced(argv);
    files(argv);
    spans(argv);
    gpus(argv);
    devices(argv);
    std::puts("ok");
    return 0;
}
