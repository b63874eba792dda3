// Folds as text.
#pragma once

#include <string>

#include "chainfold/codegen/graph/fold.hpp"

namespace chainfold::codegen {

std::string print(const Fold& fold);

}  // namespace chainfold::codegen
