// Sizes that are known only at launch: grids, scratch, trip counts of the host's loops. A SizeExpr
// is a small expression over a program's integer parameters, evaluated by the runtime before the
// launch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace chainfold::codegen {

class SizeExpr {
 public:
  SizeExpr(std::int64_t constant = 0);                 // NOLINT: an integer is a size expression
  static SizeExpr param(int index, std::string name);  ///< parameter `index` of the program
  friend SizeExpr operator+(SizeExpr a, SizeExpr b);
  friend SizeExpr operator-(SizeExpr a, SizeExpr b);
  friend SizeExpr operator*(SizeExpr a, SizeExpr b);
  friend SizeExpr ceil_div(SizeExpr a, SizeExpr b);  ///< rounds up; b > 0
  friend SizeExpr max(SizeExpr a, SizeExpr b);
  friend SizeExpr min(SizeExpr a, SizeExpr b);

  /// The value for these parameters (one slot each, as 64-bit integers). Pure.
  [[nodiscard]] std::int64_t evaluate(std::span<const std::uint64_t> params) const;
  /// One behind the last parameter that it reads.
  [[nodiscard]] int params() const;
  /// "ceil_div(segments, 32) * 8".
  [[nodiscard]] std::string print() const;

 private:
  struct Node;
  explicit SizeExpr(std::shared_ptr<const Node> node);
  static SizeExpr binary(char op, SizeExpr a, SizeExpr b);
  std::shared_ptr<const Node> node_;
};

}  // namespace chainfold::codegen
