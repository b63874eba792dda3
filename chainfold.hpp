// Chainfold: folds over arrays, written as C++ expressions and compiled at run time for the machine
// at hand. This is the one header a program includes.
#pragma once

#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/input.hpp"
#include "chainfold/dsl/lag.hpp"
#include "chainfold/dsl/let.hpp"
#include "chainfold/dsl/literal.hpp"
#include "chainfold/dsl/monoid.hpp"
#include "chainfold/dsl/number_rules.hpp"
#include "chainfold/dsl/ops.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/dsl/partition.hpp"
#include "chainfold/dsl/recurrence.hpp"
#include "chainfold/dsl/scan.hpp"
#include "chainfold/dsl/statistics.hpp"
#include "chainfold/runtime/explain.hpp"
#include "chainfold/runtime/kernel.hpp"
#include "chainfold/runtime/states.hpp"
#include "chainfold/runtime/tuning/progress.hpp"
#include "chainfold/runtime/typed_kernel.hpp"
