// explain: what stands behind a kernel, before it is compiled.
#pragma once

#include <cstdint>
#include <string>

#include "chainfold/dsl/over.hpp"
#include "chainfold/runtime/kernel.hpp"

namespace chainfold {

/// What a computation becomes on a target: the expression, graph, plan, which constant matrices and
/// why, bytes an element, the program and the kernel's source. Needs neither a GPU nor a compiler;
/// where NVRTC is found, registers are told too. A segment size that a parameter gives is explained
/// for `segment`.
std::string explain(const Computation& computation, const Target& target,
                    std::int64_t segment = 256);
/// The same for what compile() would take: the target, accuracy and policies of the options, and
/// the plan that they pin, else the default one. What a tuning chose tells Kernel::explain. Throws
/// UserError for a plan that is not legal.
std::string explain(const Computation& computation, const Options& options,
                    std::int64_t segment = 256);

}  // namespace chainfold
