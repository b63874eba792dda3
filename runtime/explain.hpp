// explain: what stands behind a kernel, before it is compiled.
#pragma once

#include <cstdint>
#include <string>

#include "chainfold/dsl/over.hpp"
#include "chainfold/runtime/kernel.hpp"

namespace chainfold {

/// What a computation becomes on a target: expression, graph, plan, which constant matrices and
/// why, bytes an element, program and source. Needs neither a GPU nor a compiler; where NVRTC is
/// found, the text has registers, too. Where a parameter gives the segment size or the number of
/// columns, it is taken to be `segment`. Throws UserError(invalid_argument) if that is below 1.
std::string explain(const Computation& computation, const Target& target,
                    std::int64_t segment = 256);
/// The same for what compile() would take: the target, accuracy and policies of the options, and
/// the plan that they pin, else the default one. (Kernel::explain shows what a tuning chose.)
/// Throws UserError for a plan that is not legal.
std::string explain(const Computation& computation, const Options& options,
                    std::int64_t segment = 256);

}  // namespace chainfold
