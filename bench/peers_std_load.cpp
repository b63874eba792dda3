#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "chainfold/bench/peers_std.hpp"

namespace chainfold::bench::std_peer {

Function load() {
  static const Function function = [] {
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    const std::string path = (program.parent_path() / "chainfold_bench_std.so").string();
    void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const symbol = module != nullptr ? ::dlsym(module, "chainfold_bench_std_scan") : nullptr;
    if (symbol == nullptr) {
      const char* const why = ::dlerror();
      throw std::runtime_error(std::string("no std::execution::par: ") +
                               (why != nullptr ? why : path.c_str()));
    }
    return reinterpret_cast<Function>(symbol);
  }();
  return function;
}

}  // namespace chainfold::bench::std_peer
