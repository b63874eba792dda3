#include "chainfold/codegen/graph/fold_print.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/lambda.hpp"

namespace chainfold::codegen {
namespace {

template <class T, class Text>
std::string joined(const std::vector<T>& items, Text text) {
  std::string out;
  for (const T& item : items) out += (out.empty() ? "" : ", ") + std::string(text(item));
  return out;
}

void print_lambda(std::string& out, std::string_view name, const Lambda& lambda) {
  auto value = [](int v) { return fmt::format("%{}", v); };
  int next = 0;
  auto param = [&](DType type) { return fmt::format("%{}: {}", next++, name_of(type)); };
  out += fmt::format("  {}({})\n", name, joined(lambda.params, param));
  for (const Lambda::Step& step : lambda.steps) {
    const std::string what =
        step.operands.empty()
            ? "constant " + text_of_bits(step.type, step.bits)
            : fmt::format("{} {}", name_of(step.op), joined(step.operands, value));
    out += fmt::format("    %{} = {} : {}\n", next++, what, name_of(step.type));
  }
  out += fmt::format("    yield {}\n", joined(lambda.results, value));
}

}  // namespace

std::string print(const Fold& fold) {
  auto name = [](DType type) { return name_of(type); };
  std::string init;
  for (std::size_t i = 0; i < fold.state.size(); ++i) {
    init += (i ? ", " : "") + text_of_bits(fold.state[i], fold.init[i]);
  }
  std::string out = fmt::format("fold {} ({}) -> state ({}) init ({}) -> {}\n", fold.name,
                                joined(fold.operands, name), joined(fold.state, name), init,
                                name_of(fold.result()));
  if (!fold.given.empty()) out += fmt::format("  given ({})\n", joined(fold.given, name));
  if (fold.tile) {
    out += fmt::format("  tile {} identity {}\n", name_of(*fold.tile),
                       text_of_bits(fold.operands[0], fold.tile_identity));
  }
  out += fmt::format("  {}, {}\n", fold.linear ? "linear" : "not linear",
                     fold.commutative ? "commutative" : "not commutative");
  if (fold.guard)
    out += fmt::format("  guard state {} below {:g}\n", fold.guard->field, fold.guard->limit);
  print_lambda(out, "lift", fold.lift);
  print_lambda(out, "merge", fold.merge);
  print_lambda(out, "finalize", fold.finalize);
  if (fold.accumulate) print_lambda(out, "accumulate", *fold.accumulate);
  if (fold.quick) {
    const QuickFold& quick = *fold.quick;
    print_lambda(out, "quick serves", quick.serves);
    print_lambda(out, "quick serves alone", quick.serves_alone);
    print_lambda(out, "quick narrow", quick.narrow);
    out += fmt::format("  quick state {} below {:g}\n", quick.field, quick.limit);
    print_lambda(out, "quick holds", quick.holds);
    print_lambda(out, "quick widen", quick.widen);
    out += print(quick.scans) + print(quick.rest);
  }
  return out;
}

}  // namespace chainfold::codegen
