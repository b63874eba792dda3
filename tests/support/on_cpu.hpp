// Whether kernels can run on this machine's CPU.
#pragma once

#include <string>

#include "chainfold/runtime/jit/llvm.hpp"

namespace chainfold::test {

/// Why no kernel can run on the CPU here; empty if it can, and in a build with the plugin, where
/// its absence is a failure.
inline std::string why_no_cpu() {
#ifdef CHAINFOLD_TEST_CPU
  return {};
#else
  return runtime::cpu_plugin_available()
             ? ""
             : "the CPU plugin was not built (it needs LLVM 19 and oneTBB)";
#endif
}

}  // namespace chainfold::test
