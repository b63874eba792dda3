// What is decided without measuring, for whoever is not of this room.
#pragma once

#include "chainfold/codegen/choose/alignment.hpp"     // IWYU pragma: export
#include "chainfold/codegen/choose/default.hpp"       // IWYU pragma: export
#include "chainfold/codegen/choose/size_classes.hpp"  // IWYU pragma: export
#include "chainfold/codegen/choose/space.hpp"         // IWYU pragma: export
