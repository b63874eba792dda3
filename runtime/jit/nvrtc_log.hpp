// Reading the logs of NVRTC and ptxas.
#pragma once

#include <string>
#include <vector>

#include "chainfold/runtime/jit/nvrtc.hpp"

namespace chainfold::runtime {

/// Parts of the above that tests look at on their own.
namespace nvrtc_detail {

/// The place of the first error in a compiler log. `line` is a 1-based line of the source (or of
/// the PTX), 0 if the log names none. `column` is the number of characters between that line's
/// indentation and the caret, -1 without a caret.
struct ErrorPlace {
  int line = 0;
  int column = -1;
  bool in_ptx = false;
};
ErrorPlace first_error(const std::string& log);

/// "  17 | text" and, with a column, a caret on a second line. Empty if there is no such line.
std::string quote_line(const std::string& text, const ErrorPlace& place);

/// The kernels' resources in a log of -Xptxas -v.
std::vector<KernelResources> parse_resources(const std::string& log);

/// How to mend a missing libnvrtc-builtins if the log is about that, else empty.
std::string builtins_hint(const std::string& log, const std::string& nvrtc_file);

}  // namespace nvrtc_detail

}  // namespace chainfold::runtime
