#include "chainfold/codegen/plan/strategies.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "chainfold/codegen/plan/columns.hpp"
#include "chainfold/codegen/plan/elements.hpp"
#include "chainfold/codegen/plan/head_tiles.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"
#include "chainfold/codegen/plan/rows.hpp"
#include "chainfold/codegen/plan/scan_strategies.hpp"
#include "chainfold/codegen/plan/staged.hpp"

namespace chainfold::codegen {

namespace {

std::vector<StrategyRow> all_rows() {
  std::vector<StrategyRow> rows{rows_strategy(),      elements_strategy(), parts_strategy(),
                                staged_strategy(),    columns_strategy(),  merge_path_strategy(),
                                head_tiles_strategy()};
  for (const auto& family :
       {scan_strategies(), published_strategies(), published_scan_strategies()})
    rows.insert(rows.end(), family.begin(), family.end());
  std::sort(rows.begin(), rows.end(),
            [](const StrategyRow& a, const StrategyRow& b) { return a.id < b.id; });
  return rows;
}

}  // namespace

std::span<const StrategyRow> strategies() {
  static const auto& rows = *new std::vector<StrategyRow>(all_rows());
  return rows;
}

const StrategyRow& row_of(Strategy strategy) {
  return strategies()[static_cast<std::size_t>(strategy)];
}

std::string_view name_of(Strategy strategy) { return row_of(strategy).name; }

std::vector<std::string_view> strategy_names() {
  std::vector<std::string_view> names;
  for (const StrategyRow& row : strategies()) names.push_back(row.name);
  return names;
}

std::string describe(Strategy strategy) {
  const StrategyRow& row = row_of(strategy);
  return fmt::format("{} serves {}", row.name, row.serves);
}

}  // namespace chainfold::codegen
