#include "chainfold/codegen/lower/fold/path_going.hpp"

#include <iterator>
#include <utility>

#include "chainfold/codegen/graph/fold.hpp"

namespace chainfold::codegen {

PathGoing::Going PathGoing::from(Partials open) {
  Going going{.open = std::move(open)};
  if (!quiet_) return going;
  going.quiet = tile_.identities();
  going.is_quiet = b_.boolean(false);
  return going;
}

Builder::Values PathGoing::flatten(const Going& going) {
  Builder::Values values = tile_.flatten(going.open);
  if (going.is_quiet == kNoValue) return values;
  const Builder::Values quiet = tile_.flatten(going.quiet);
  values.insert(values.end(), quiet.begin(), quiet.end());
  values.push_back(going.is_quiet);
  return values;
}

PathGoing::Going PathGoing::unflatten(const Builder::Values& values) {
  std::ptrdiff_t fields = 0;
  for (const Fold& fold : graph_.folds) fields += std::ssize(fold.state);
  const auto first = values.begin();
  Going going{.open = tile_.unflatten(Builder::Values(first, first + fields))};
  if (std::ssize(values) == fields) return going;
  going.quiet = tile_.unflatten(Builder::Values(first + fields, first + 2 * fields));
  going.is_quiet = values[static_cast<std::size_t>(2 * fields)];
  return going;
}

Partials PathGoing::settle(const Going& going) {
  if (going.is_quiet == kNoValue) return going.open;
  return tile_.unflatten(b_.branch(
      going.is_quiet,
      [&] {
        const Partials all = tile_.reduce_lanes(going.quiet, 1, kWarpWidth);
        return tile_.flatten(tile_.merge(going.open, all));
      },
      [&] { return tile_.flatten(going.open); }));
}

Partials PathGoing::sums_of(const std::vector<Loaded>& loads) {
  std::vector<Partials> parts;
  for (const Loaded& load : loads) parts.push_back(tile_.fold_tile(load));
  Partials sums;
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    std::vector<Partial> of_fold;
    for (const Partials& part : parts) of_fold.push_back(part[f]);
    sums.push_back(tile_.tree(f, std::move(of_fold)));
  }
  const ValueId bad = tile_.exceeds(sums);
  if (bad == kNoValue) return sums;
  const auto one_by_one = [&] {
    TileByElements elements(b_, tile_);
    Partials all;
    for (const Loaded& load : loads) {
      const Partials each = elements.tile().fold_elements(load);
      for (int i = 0; i < load.width; ++i) {
        Partials one;
        for (const Partial& part : each) one.push_back(element_of(b_, part, i));
        all = elements.tile().lift(all.empty() ? one : elements.tile().merge(all, one));
      }
    }
    return elements.tile().flatten(all);
  };
  const auto states =
      b_.branch(b_.any(bad), one_by_one, [&] { return tile_.flatten(tile_.lift(sums)); });
  return tile_.unflatten(states);
}

void PathGoing::add(const std::vector<Loaded>& loads, Going& going) {
  Partials sums = sums_of(loads);
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    Partial sum = std::move(sums[f]);
    if (!graph_.folds[f].commutative) {
      sum = tile_.of_warp(f, std::move(sum), 1);
      going.open[f] = tile_.lift(f, tile_.merge(f, going.open[f], sum));
    } else {
      going.quiet[f] = tile_.lift(f, tile_.merge(f, going.quiet[f], sum));
      going.is_quiet = b_.boolean(true);
    }
  }
}

std::vector<std::size_t> PathGoing::used_inputs() const {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
    if (tile_.uses_input(i)) used.push_back(i);
  return used;
}

Partial PathGoing::choose(ValueId condition, const Partial& a, const Partial& b) {
  Partial chosen = a;
  for (std::size_t i = 0; i < a.fields.size(); ++i)
    chosen.fields[i] = b_.select(condition, a.fields[i], b.fields[i]);
  return chosen;
}

Partial PathGoing::shuffled_up(const Partial& part, int distance) {
  Partial shuffled = part;
  for (ValueId& field : shuffled.fields) field = b_.shuffle_up(b_.splat(field), distance);
  return shuffled;
}

Partial PathGoing::since_heads(Partial state, ValueId nearest, const Merge& merge) {
  for (int distance = 1; distance < kWarpWidth; distance *= 2) {
    const ValueId reaches = b_.compute(Op::ge, {b_.sub(b_.lane(), b_.i32(distance)), nearest});
    state = choose(reaches, merge(shuffled_up(state, distance), state), state);
  }
  return state;
}

Partial PathGoing::before_lanes(const Partial& since, const Partial& open, ValueId is_first,
                                ValueId open_here, const Merge& merge) {
  const Partial before = shuffled_up(since, 1);
  return choose(open_here, choose(is_first, open, merge(open, before)), before);
}

Partial PathGoing::element_of(Builder& b, Partial part, int element) {
  for (ValueId& field : part.fields)
    if (b.type(field).width > 1) field = b.extract(field, element);
  return part;
}

}  // namespace chainfold::codegen
