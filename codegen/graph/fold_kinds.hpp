// What kinds of folds a graph has, as far as plans depend on it.
#pragma once

#include <cstdint>
#include <vector>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

[[nodiscard]] bool has_moments(const Graph& graph);
/// Whether it is a sum whose elements are f32 and whose states are f64.
[[nodiscard]] bool sums_wide(const Fold& fold);
/// The fields of a fold's state that ordinary elements change, as plans count registers. An f64
/// that comes from f32 counts as two f32.
[[nodiscard]] std::vector<DType> carried_fields(const Fold& fold);
/// Bytes of those of all folds.
[[nodiscard]] std::int64_t carried_bytes(const Graph& graph);
/// Bytes of the states of all folds, as they lie in memory.
[[nodiscard]] std::int64_t state_bytes(const Graph& graph);
/// Bytes of one element of all inputs, as they lie in memory; 0: there are no inputs.
[[nodiscard]] int element_bytes(const Graph& graph);
/// The same fields where elements are scanned: those of moments are states by themselves.
[[nodiscard]] std::vector<DType> scanned_fields(const Fold& fold);
/// Whether folds take an instruction or two an element, so that memory is what they wait for.
[[nodiscard]] bool is_plain(const Graph& graph);
/// Whether some fold combines booleans.
[[nodiscard]] bool folds_tests(const Graph& graph);
/// Whether a fold, or some fold of a graph, merges states of several fields.
[[nodiscard]] bool merges_fields(const Fold& fold);
[[nodiscard]] bool merges_fields(const Graph& graph);
/// Whether all folds are short ones, or moments, of unfiltered inputs as they are, converted at
/// most.
[[nodiscard]] bool folds_inputs(const Graph& graph);
/// Whether it is one plain fold of two elements a segment, to one as large: a third of what moves
/// is results.
[[nodiscard]] bool folds_pairs(const Graph& graph, std::int64_t segment);
/// Whether it is one plain fold of one input as it is, whose elements have two bytes and more.
[[nodiscard]] bool is_one_fold(const Graph& graph);
/// Whether that one fold adds up f64: their sum, mean or another linear function of it.
[[nodiscard]] bool adds_doubles(const Graph& graph);

}  // namespace chainfold::codegen
