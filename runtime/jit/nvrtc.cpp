#include "chainfold/runtime/jit/nvrtc.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <semaphore>
#include <system_error>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "chainfold/runtime/host/loader_path.hpp"
#include "chainfold/runtime/jit/nvrtc_log.hpp"

namespace chainfold::runtime {
namespace {

using NvrtcResult = int;
using NvrtcProgram = struct OpaqueProgram*;
constexpr NvrtcResult kOutOfMemory = 1;
constexpr NvrtcResult kBuiltinFailure = 7;
constexpr int kOldestNvrtc = 12000;
constexpr int kFirstMinimal = 13000;  // known to have the option --minimal
constexpr const char* kProgramName = "chainfold.cu";

#define CHAINFOLD_NVRTC(X)                                                                     \
  X(get_error_string, nvrtcGetErrorString, const char*, (NvrtcResult result))                  \
  X(version, nvrtcVersion, NvrtcResult, (int* major, int* minor))                              \
  X(architecture_count, nvrtcGetNumSupportedArchs, NvrtcResult, (int* count))                  \
  X(architectures, nvrtcGetSupportedArchs, NvrtcResult, (int* architectures))                  \
  X(create_program, nvrtcCreateProgram, NvrtcResult,                                           \
    (NvrtcProgram * program, const char* source, const char* name, int header_count,           \
     const char* const* headers, const char* const* include_names))                            \
  X(destroy_program, nvrtcDestroyProgram, NvrtcResult, (NvrtcProgram * program))               \
  X(compile_program, nvrtcCompileProgram, NvrtcResult,                                         \
    (NvrtcProgram program, int option_count, const char* const* options))                      \
  X(log_size, nvrtcGetProgramLogSize, NvrtcResult, (NvrtcProgram program, std::size_t* bytes)) \
  X(log, nvrtcGetProgramLog, NvrtcResult, (NvrtcProgram program, char* log))                   \
  X(cubin_size, nvrtcGetCUBINSize, NvrtcResult, (NvrtcProgram program, std::size_t* bytes))    \
  X(cubin, nvrtcGetCUBIN, NvrtcResult, (NvrtcProgram program, char* cubin))                    \
  X(ptx_size, nvrtcGetPTXSize, NvrtcResult, (NvrtcProgram program, std::size_t* bytes))        \
  X(ptx, nvrtcGetPTX, NvrtcResult, (NvrtcProgram program, char* ptx))

struct NvrtcApi {
// NOLINTNEXTLINE(bugprone-macro-parentheses): these are declarations
#define CHAINFOLD_DECLARE(member, symbol, result, parameters) result(*member) parameters = nullptr;
  CHAINFOLD_NVRTC(CHAINFOLD_DECLARE)
#undef CHAINFOLD_DECLARE
  int version_number = 0;
  std::vector<int> known;
  std::string file;
  std::string path;
  std::string missing;  // the error's text if there is no NVRTC
  std::counting_semaphore<kConcurrentCompiles> turns{kConcurrentCompiles};
};

std::string accept_nvrtc(void* handle, const std::string& file) {
#define CHAINFOLD_FIND(member, symbol, result, parameters) \
  if (dlsym(handle, #symbol) == nullptr) return fmt::format("{} lacks {}", file, #symbol);
  CHAINFOLD_NVRTC(CHAINFOLD_FIND)
#undef CHAINFOLD_FIND
  int major = 0;
  int minor = 0;
  const auto version = reinterpret_cast<NvrtcResult (*)(int*, int*)>(dlsym(handle, "nvrtcVersion"));
  if (version(&major, &minor) != 0) return "nvrtcVersion failed";
  if (1000 * major + 10 * minor < kOldestNvrtc) {
    return fmt::format("{} is version {}.{}, older than 12.0", file, major, minor);
  }
  return {};
}

/// NVRTC opens libnvrtc-builtins by its bare name. In a wheel it lies beside libnvrtc and not on
/// the loader's path; once it is open under that name, NVRTC finds it.
void open_builtins_beside(const std::string& nvrtc_file) {
  namespace fs = std::filesystem;
  if (nvrtc_file.find('/') == std::string::npos)
    return;  // on the loader's path, as is its companion
  std::error_code error;
  fs::directory_iterator it(fs::path(nvrtc_file).parent_path(), error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with("libnvrtc-builtins.so.")) continue;
    dlopen(it->path().c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  }
}

NvrtcApi* load_nvrtc() {
  auto* api = new NvrtcApi;
  const OpenedLibrary opened = open_first(nvrtc_places(SearchEnvironment::current()), accept_nvrtc);
  if (opened.handle == nullptr) {
    api->missing = missing_library_text(
        "libnvrtc (CUDA's run-time compiler, 12.0 or later)", opened,
        "install the CUDA Toolkit or NVIDIA's Python wheel of NVRTC (nvidia-cuda-nvrtc), or set "
        "CHAINFOLD_NVRTC to the path of libnvrtc.so.*");
    return api;
  }
  open_builtins_beside(opened.file);
  api->file = opened.file;
  api->path = file_of_library(opened.handle);
#define CHAINFOLD_LOAD(member, symbol, result, parameters) \
  api->member = reinterpret_cast<decltype(api->member)>(dlsym(opened.handle, #symbol));
  CHAINFOLD_NVRTC(CHAINFOLD_LOAD)
#undef CHAINFOLD_LOAD
  int major = 0;
  int minor = 0;
  api->version(&major, &minor);
  api->version_number = 1000 * major + 10 * minor;
  int count = 0;
  api->architecture_count(&count);
  api->known.resize(static_cast<std::size_t>(std::max(count, 0)));
  if (!api->known.empty()) api->architectures(api->known.data());
  std::sort(api->known.begin(), api->known.end());
  return api;
}

NvrtcApi& nvrtc() {
  // Leaked, as the library is: it may be in use on another thread when statics are destroyed.
  static NvrtcApi* const kApi = load_nvrtc();
  if (!kApi->missing.empty()) throw DeviceError(ErrorCode::missing_library, kApi->missing);
  return *kApi;
}

/// Holds one of the turns, and the program while it lasts.
class Compilation {
 public:
  Compilation(NvrtcApi& api, const std::string& source) : api_(api) {
    api_.turns.acquire();
    const NvrtcResult result =
        api_.create_program(&program_, source.c_str(), kProgramName, 0, nullptr, nullptr);
    if (result == 0) return;
    api_.turns.release();
    throw DeviceError(result == kOutOfMemory ? ErrorCode::out_of_memory : ErrorCode::device_failed,
                      fmt::format("nvrtcCreateProgram failed: {}", api_.get_error_string(result)));
  }
  ~Compilation() {
    api_.destroy_program(&program_);
    api_.turns.release();
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  NvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> words;
    words.reserve(options.size());
    for (const std::string& option : options) words.push_back(option.c_str());
    return api_.compile_program(program_, static_cast<int>(words.size()), words.data());
  }
  /// The compiler's words, without the terminating zero and blank lines at the end.
  std::string log() const { return text(api_.log_size, api_.log); }
  std::string ptx() const { return text(api_.ptx_size, api_.ptx); }
  std::vector<std::byte> cubin() const {
    std::size_t bytes = 0;
    std::vector<std::byte> image;
    if (api_.cubin_size(program_, &bytes) == 0) image.resize(bytes);
    if (!image.empty()) api_.cubin(program_, reinterpret_cast<char*>(image.data()));
    return image;
  }

 private:
  std::string text(NvrtcResult (*size)(NvrtcProgram, std::size_t*),
                   NvrtcResult (*get)(NvrtcProgram, char*)) const {
    std::size_t bytes = 0;
    if (size(program_, &bytes) != 0 || bytes == 0) return {};
    std::string result(bytes, '\0');
    if (get(program_, result.data()) != 0) return {};
    while (!result.empty() && (result.back() == '\0' || result.back() == '\n')) result.pop_back();
    return result;
  }

  NvrtcApi& api_;
  NvrtcProgram program_ = nullptr;
};

[[noreturn]] void throw_compile_error(const NvrtcApi& api, NvrtcResult result,
                                      const Compilation& compilation, const std::string& source,
                                      const NvrtcOptions& options) {
  using namespace nvrtc_detail;
  const std::string log = compilation.log();
  const std::string why = api.get_error_string(result);
  const std::string target = fmt::format("sm_{}{}", options.arch, options.arch_suffix);
  const std::string shown = log.empty() ? "(the compiler's log is empty)" : log;
  const std::string hint = builtins_hint(log, api.file);
  if (!hint.empty() || result == kBuiltinFailure) {
    throw DeviceError(
        ErrorCode::missing_library,
        fmt::format("NVRTC could not start for {}: {}. {}\n{}", target, why, hint, shown));
  }
  if (result == kOutOfMemory) {
    throw DeviceError(
        ErrorCode::out_of_memory,
        fmt::format("NVRTC ran out of host memory for {}: {}\n{}", target, why, shown));
  }
  const ErrorPlace place = first_error(log);
  const std::string line = quote_line(place.in_ptx ? compilation.ptx() : source, place);
  throw JitError(fmt::format("NVRTC {}.{} refused a generated kernel for {} ({}){}{}\n{}",
                             api.version_number / 1000, api.version_number % 1000 / 10, target, why,
                             line.empty()   ? ""
                             : place.in_ptx ? " at PTX line\n"
                                            : " at line\n",
                             line, shown),
                 line, log, source);
}

}  // namespace

std::vector<std::string> nvrtc_options(const NvrtcOptions& options) {
  std::vector<std::string> words = {
      fmt::format("--gpu-architecture={}_{}{}", options.ptx ? "compute" : "sm", options.arch,
                  options.arch_suffix),
      "--std=c++17",
      "--fmad=false",
      "--ftz=false",
      "--prec-div=true",
      "--prec-sqrt=true",
  };
  // ptxas takes "-v" only as a word of its own.
  if (options.resource_report && !options.ptx) words.insert(words.end(), {"-Xptxas", "-v"});
  return words;
}

Cubin compile_cubin(const std::string& source, const NvrtcOptions& options) {
  NvrtcApi& api = nvrtc();
  if (!std::binary_search(api.known.begin(), api.known.end(), options.arch)) {
    throw UserError(
        ErrorCode::unsupported,
        fmt::format("NVRTC {}.{} does not compile for sm_{}; it knows {}. Fix: use a libnvrtc that "
                    "does (CHAINFOLD_NVRTC), or PTX of an older architecture",
                    api.version_number / 1000, api.version_number % 1000 / 10, options.arch,
                    fmt::join(api.known, ", ")),
        "target");
  }
  Compilation compilation(api, source);
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> words = nvrtc_options(options);
  // Without textures and the like: a shorter compile, and the same machine code.
  if (api.version_number >= kFirstMinimal) words.emplace_back("--minimal");
  const NvrtcResult result = compilation.compile(words);
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  if (result != 0) throw_compile_error(api, result, compilation, source, options);

  Cubin cubin;
  cubin.compile_ms = elapsed.count();
  cubin.log = compilation.log();
  if (options.ptx) {
    const std::string ptx = compilation.ptx();
    const auto* bytes = reinterpret_cast<const std::byte*>(ptx.c_str());
    cubin.image.assign(bytes, bytes + ptx.size() + 1);  // the driver reads PTX up to its zero
  } else {
    cubin.image = compilation.cubin();
    if (options.resource_report) cubin.resources = nvrtc_detail::parse_resources(cubin.log);
  }
  if (cubin.image.empty()) throw InternalError("NVRTC succeeded without an image", cubin.log);
  return cubin;
}

bool nvrtc_available() noexcept {
  try {
    nvrtc();
    return true;
  } catch (...) {
    return false;
  }
}

int nvrtc_version() { return nvrtc().version_number; }
const std::string& nvrtc_file() { return nvrtc().file; }
const std::string& nvrtc_path() { return nvrtc().path; }
const std::vector<int>& nvrtc_architectures() { return nvrtc().known; }

}  // namespace chainfold::runtime
