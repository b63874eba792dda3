#include "chainfold/runtime/jit/llvm.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/target/target.hpp"
#include "chainfold/runtime/host/loader_path.hpp"

namespace chainfold::runtime {
namespace {

static_assert(codegen::kCpuArrayBytes == CHAINFOLD_CPU_ARRAY_BYTES);

constexpr const char* kPluginFile = "libchainfold_cpu.so";
constexpr const char* kPluginVariable = "CHAINFOLD_CPU_PLUGIN";
constexpr const char* kBitsVariable = "CHAINFOLD_VECTOR_BITS";

/// The folder of the file that holds this function: libchainfold, or a program that links it
/// statically. Empty when the loader does not know.
std::filesystem::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&cpu_plugin), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  const std::filesystem::path file = std::filesystem::weakly_canonical(info.dli_fname, error);
  return error ? std::filesystem::path() : file.parent_path();
}

/// The table of an open library, or null with the reason in `why`.
const chainfold_cpu_plugin* table_of(void* handle, std::string& why) {
  void* symbol = dlsym(handle, CHAINFOLD_CPU_PLUGIN_ENTRY);
  if (symbol == nullptr) {
    why = "not a Chainfold CPU plugin: it lacks " CHAINFOLD_CPU_PLUGIN_ENTRY;
    return nullptr;
  }
  const chainfold_cpu_plugin* table = reinterpret_cast<chainfold_cpu_plugin_entry>(symbol)();
  if (table == nullptr) {
    why = "the plugin failed to describe this processor";
  } else if (table->abi_version != CHAINFOLD_CPU_PLUGIN_ABI_VERSION ||
             table->struct_size != sizeof(chainfold_cpu_plugin)) {
    why = fmt::format(
        "its interface is version {} of {} bytes, but this libchainfold needs version {} of {} "
        "bytes: "
        "install both from one build",
        table->abi_version, table->struct_size, CHAINFOLD_CPU_PLUGIN_ABI_VERSION,
        sizeof(chainfold_cpu_plugin));
    table = nullptr;
  }
  return table;
}

void check_vector_bits() {
  const char* const bits = std::getenv(kBitsVariable);
  if (bits == nullptr) return;
  const std::string_view text(bits);
  if (text.empty() || text == "512" || text == "256" || text == "128") return;
  throw UserError(
      ErrorCode::invalid_argument,
      fmt::format("{}={} is no width of a CPU's vectors; set it to 512, 256 or 128, or unset it",
                  kBitsVariable, text),
      kBitsVariable);
}

std::string refuse_plugin(void* handle, const std::string&) {
  std::string why;
  table_of(handle, why);
  return why;
}

/// The `number`-th line of `text`, counted from 1, with its number; empty when there is none.
std::string numbered_line(std::string_view text, std::int32_t number) {
  if (number < 1) return {};
  for (std::int32_t i = 1; i < number; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return fmt::format("{:4} | {}", number, text.substr(0, text.find('\n')));
}

}  // namespace

std::vector<SearchPlace> cpu_plugin_places() {
  if (const char* chosen = std::getenv(kPluginVariable); chosen != nullptr && *chosen != '\0') {
    return {{fmt::format("${} (nothing else is tried while it is set)", kPluginVariable),
             {std::string(chosen)},
             {}}};
  }
  std::vector<SearchPlace> places;
  if (const std::filesystem::path folder = own_folder(); folder.empty()) {
    places.push_back({"beside libchainfold", {}, "its folder is unknown"});
  } else {
    const auto add = [&](const char* description, const std::filesystem::path& place) {
      places.push_back({description, {(place / kPluginFile).lexically_normal().string()}, {}});
    };
    add("beside libchainfold", folder);
    add("chainfold/ beside libchainfold", folder / "chainfold");
    add("../lib/chainfold/ from libchainfold", folder / ".." / "lib" / "chainfold");
  }
  places.push_back({"the loader's path", {kPluginFile}, {}});
  return places;
}

const chainfold_cpu_plugin& open_cpu_plugin(const std::vector<SearchPlace>& places) {
  check_vector_bits();  // the plugin reads the variable once, as it is opened
  const OpenedLibrary opened = open_first(places, refuse_plugin);
  if (opened.handle == nullptr) {
    throw DeviceError(ErrorCode::missing_library,
                      missing_library_text(
                          "the CPU plugin", opened,
                          fmt::format("build with -DCHAINFOLD_CPU=ON, or set {} to the path of {}",
                                      kPluginVariable, kPluginFile)));
  }
  std::string why;
  return *table_of(opened.handle, why);
}

namespace {

struct OpenPlugin {
  const chainfold_cpu_plugin& table;
  std::string identity;
};

std::string identity_of(const chainfold_cpu_plugin& plugin) {
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(plugin.compile), &info) != 0;
  const FileIdentity file = identify_file(known ? info.dli_fname : "").value_or(FileIdentity{});
  return fmt::format("LLVM {} in {} ({} bytes, {}), interface {}; {} with {}, {}-bit vectors",
                     plugin.llvm_version, file.path, file.bytes, file.modified, plugin.abi_version,
                     plugin.host_cpu, plugin.host_features, plugin.vector_bits);
}

const OpenPlugin& open_plugin() {
  // Never destroyed: kernels may be compiled while statics are destroyed. Identified as soon as it
  // is open, before an upgrade can put another file in its place.
  static const OpenPlugin& plugin = *[] {
    const chainfold_cpu_plugin& table = open_cpu_plugin(cpu_plugin_places());
    return new OpenPlugin{table, identity_of(table)};
  }();
  return plugin;
}

}  // namespace

const chainfold_cpu_plugin& cpu_plugin() { return open_plugin().table; }

std::string cpu_text(const chainfold_cpu_plugin& plugin) {
  return fmt::format("CPU {}, {} thread{}, {}-bit vectors", plugin.host_cpu, plugin.threads,
                     plugin.threads == 1 ? "" : "s", plugin.vector_bits);
}

const std::string& cpu_plugin_identity() { return open_plugin().identity; }

bool cpu_plugin_available() noexcept {
  try {
    cpu_plugin();
    return true;
  } catch (...) {
    return false;
  }
}

namespace {

[[noreturn]] void throw_refused(const chainfold_cpu_plugin& plugin, chainfold_cpu_error& error,
                                const std::string& source) {
  std::string log = error.message != nullptr ? error.message : "out of memory";
  std::string line = numbered_line(source, error.line);
  plugin.free_error(&error);
  while (log.ends_with('\n')) log.pop_back();
  const std::string message = fmt::format("LLVM {} rejected a generated kernel: {}{}{}",
                                          plugin.llvm_version, log, line.empty() ? "" : "\n", line);
  throw JitError(message, std::move(line), std::move(log), source);
}

}  // namespace

namespace {

std::optional<CpuObject> compile_object(const std::string& ir, chainfold_cpu_effort effort,
                                        const std::int32_t* given_up) {
  const chainfold_cpu_plugin& plugin = cpu_plugin();
  chainfold_cpu_error error{};
  chainfold_cpu_object object{};
  const auto start = std::chrono::steady_clock::now();
  const int status = plugin.compile(ir.data(), ir.size(), effort, given_up, &object, &error);
  const auto end = std::chrono::steady_clock::now();
  if (status == CHAINFOLD_CPU_GIVEN_UP) return std::nullopt;
  if (status != CHAINFOLD_CPU_DONE) throw_refused(plugin, error, ir);
  const std::unique_ptr<chainfold_cpu_object, void (*)(chainfold_cpu_object*)> guard(
      &object, plugin.free_object);
  return CpuObject{.bytes = std::string(static_cast<const char*>(object.data), object.size),
                   .compile_ms = std::chrono::duration<double, std::milli>(end - start).count()};
}

}  // namespace

CpuObject compile_cpu_object(const std::string& ir, Effort effort) {
  return *compile_object(
      ir, effort == Effort::baseline ? CHAINFOLD_CPU_BASELINE : CHAINFOLD_CPU_OPTIMISED, nullptr);
}

std::optional<CpuObject> compile_cpu_object_beside(const std::string& ir,
                                                   const std::int32_t& given_up) {
  return compile_object(ir, CHAINFOLD_CPU_OPTIMISED, &given_up);
}

void run_on_cpu(const chainfold_cpu_launch* launch, std::int64_t blocks, std::int64_t grain,
                const std::uint64_t* args) {
  if (cpu_plugin().parallel_for(launch, blocks, grain, args) != 0) {
    throw DeviceError(
        ErrorCode::out_of_memory,
        "the CPU scheduler could not run a launch for lack of memory or threads: free "
        "some memory, or raise the process's thread limit");
  }
}

std::shared_ptr<CpuModule> CpuModule::link(const std::string& object,
                                           const std::vector<std::string>& symbols,
                                           const std::string& source) {
  const chainfold_cpu_plugin& plugin = cpu_plugin();
  std::shared_ptr<CpuModule> module(new CpuModule(plugin, symbols.size()));
  std::vector<const char*> names;
  names.reserve(symbols.size());
  for (const std::string& symbol : symbols) names.push_back(symbol.c_str());
  chainfold_cpu_error error{};
  if (plugin.load(object.data(), object.size(), names.data(), names.size(),
                  module->functions_.data(), &module->stack_bytes_, &module->module_,
                  &error) != 0) {
    throw_refused(plugin, error, source);
  }
  return module;
}

std::shared_ptr<const CpuModule> CpuModule::load(const std::string& object,
                                                 const std::vector<std::string>& symbols) {
  return link(object, symbols, {});
}

std::shared_ptr<const CpuModule> CpuModule::compile(const std::string& ir,
                                                    const std::vector<std::string>& symbols) {
  const CpuObject object = compile_cpu_object(ir);
  const std::shared_ptr<CpuModule> module = link(object.bytes, symbols, ir);
  module->compile_ms_ = object.compile_ms;
  return module;
}

CpuModule::~CpuModule() {
  if (module_ != nullptr) plugin_.destroy(module_);
}

chainfold_cpu_launch CpuModule::function(std::size_t i) const {
  if (i >= functions_.size()) {
    throw InternalError(
        fmt::format("function {} of a CPU module that holds {}", i, functions_.size()));
  }
  return functions_[i];
}

void CpuModule::run(std::size_t i, std::int64_t blocks, std::int64_t grain,
                    const std::uint64_t* args) const {
  const chainfold_cpu_launch launch = function(i);
  run_on_cpu(&launch, blocks, grain, args);
}

}  // namespace chainfold::runtime
