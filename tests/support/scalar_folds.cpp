#include "chainfold/tests/support/scalar_folds.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/literal.hpp"
#include "chainfold/tests/support/programs.hpp"

namespace chainfold::test {

namespace {

using Inputs = std::vector<Column>;

double real(const Inputs& inputs, std::int64_t i) {
  return codegen::double_of_bits(inputs[0].type(), inputs[0].get(i));
}
std::int64_t whole_number(const Inputs& inputs, std::int64_t i) {
  const DType type = inputs[0].type();
  return static_cast<std::int64_t>(
      codegen::evaluate(codegen::Op::convert, type, DType::i64, inputs[0].get(i)));
}

template <class Condition>
Bits run_of(std::int64_t begin, std::int64_t end, Condition hit) {
  std::int64_t best = 0, now = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    now = hit(i) ? now + 1 : 0;
    best = std::max(best, now);
  }
  return static_cast<Bits>(best);
}

Bits run_above_zero(const Inputs& inputs, std::int64_t begin, std::int64_t end) {
  return run_of(begin, end, [&](std::int64_t i) { return real(inputs, i) > 0; });
}

Bits brackets(const Inputs& inputs, std::int64_t begin, std::int64_t end) {
  std::int64_t open = 0, unmatched = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    if (whole_number(inputs, i) > 0) {
      ++open;
    } else if (open > 0) {
      --open;
    } else {
      ++unmatched;
    }
  }
  return static_cast<Bits>(unmatched * 1000003 + open);
}

Bits continuant(const Inputs& inputs, std::int64_t begin, std::int64_t end) {
  std::uint32_t p = 1, q = 0, r = 0, t = 1;
  for (std::int64_t i = begin; i < end; ++i) {  // times ((x, 1), (1, 0)) from the right
    const auto x = static_cast<std::uint32_t>(whole_number(inputs, i));
    const std::uint32_t new_p = p * x + q, new_r = r * x + t;
    q = p;
    t = r;
    p = new_p;
    r = new_r;
  }
  return p ^ (q * 3 + r) ^ (t << 7);
}

Bits first_and_last(const Inputs& inputs, std::int64_t begin, std::int64_t end) {
  while (begin < end && std::isnan(real(inputs, begin))) ++begin;
  while (end > begin && std::isnan(real(inputs, end - 1))) --end;
  const double value = begin < end ? real(inputs, begin) - 4 * real(inputs, end - 1) : std::nan("");
  return codegen::bits_of(value);
}

Bits horner(const Inputs& inputs, std::int64_t begin, std::int64_t end) {
  std::uint64_t hash = 0;
  for (std::int64_t i = begin; i < end; ++i)
    hash = hash * 1000003 + static_cast<std::uint64_t>(whole_number(inputs, i));
  return hash;
}

Bits last_even(const Inputs& inputs, std::int64_t begin, std::int64_t end) {
  const std::int64_t last = (end - begin - 1) / 2 * 2;
  return inputs[0].get(begin + last);
}

Bits argmax(const Inputs& inputs, std::int64_t begin, std::int64_t end) {
  std::int64_t best = begin;
  for (std::int64_t i = begin; i < end; ++i) {
    if (std::isnan(real(inputs, i))) return static_cast<Bits>(i - begin);
    if (real(inputs, i) > real(inputs, best)) best = i;
  }
  return static_cast<Bits>(best - begin);
}

}  // namespace

const std::vector<ScalarFold>& scalar_folds() {
  static const std::vector<ScalarFold> kFolds = {
      {"longest_run_f32", run_above_zero},
      {"longest_run_bf16", run_above_zero},
      {"longest_run_bool",
       [](const Inputs& inputs, std::int64_t begin, std::int64_t end) {
         return run_of(begin, end, [&](std::int64_t i) { return inputs[0].get(i) != 0; });
       }},
      {"brackets_i8", brackets},
      {"continuant_u32", continuant},
      {"first_and_last_f64", first_and_last},
      {"horner_u8", horner},
      {"horner_u64", horner},
      {"last_even_i32", last_even},
      {"argmax_f32", argmax},
      {"argmax_i8", argmax},
  };
  return kFolds;
}

std::string compare(const ScalarFold& fold, const std::vector<Column>& inputs,
                    const std::vector<Column>& outputs, std::int64_t segment,
                    std::int64_t elements) {
  const std::int64_t count = segment == 0 ? 1 : elements / segment;
  if (outputs[0].count() != count) return "the number of segments differs";
  std::string problems;
  int wrong = 0;
  for (std::int64_t s = 0; s < count; ++s) {
    const std::int64_t begin = s * segment, end = segment == 0 ? elements : begin + segment;
    const DType type = outputs[0].type();
    const Bits expected = fold.value(inputs, begin, end), actual = outputs[0].get(s);
    auto is_nan = [&](Bits bits) {
      return is_float(type) && std::isnan(codegen::double_of_bits(type, bits));
    };
    if (actual == expected || (is_nan(actual) && is_nan(expected)) || ++wrong > 4) continue;
    problems +=
        fmt::format("segment {}: {} instead of {}\n", s, codegen::text_of_bits(type, actual),
                    codegen::text_of_bits(type, expected));
  }
  return problems;
}

std::string check_fold_order(const ScalarFold& fold, const codegen::Target& target,
                             std::size_t turn, std::size_t step) {
  const TestProgram& tested = program(fold.program);
  std::string problems;
  for (const std::int64_t segment : kOrderSizes) {
    if (++turn % step != 0) continue;
    const std::size_t pick = turn / step;
    const Computation computation = tested.over(segment > 0 ? segments(segment) : whole());
    const Kernel kernel = compile(computation, {.target = target});
    const std::int64_t elements =
        segment == 0 ? 3000017 : segment * std::clamp<std::int64_t>(40000 / segment, 3, 2085);
    const Fill fill = tested.fills[pick % tested.fills.size()];
    const codegen::GraphInput& in = computation.graph().inputs[0];
    std::vector<Column> inputs, outputs;
    inputs.push_back(make_column(in.type, elements, fill, pick, pick % 3 == 0 ? 8 : 0));
    const std::int64_t count = segment == 0 ? 1 : elements / segment;
    Outputs bound;
    for (std::size_t o = 0; o < computation.outputs(); ++o)
      outputs.emplace_back(computation.output_type(o), count);
    for (Column& column : outputs)
      bound.push_back(OutputBinding(column.data(), column.type(), count));
    kernel.run_into({Binding(in.name, inputs[0].data(), in.type, elements)}, bound);
    const std::string wrong = compare(fold, inputs, outputs, segment, elements);
    if (!wrong.empty()) {
      problems += fmt::format("{}, segment {}, {} elements of {}:\n{}", fold.program, segment,
                              elements, name_of(fill), wrong);
    }
  }
  return problems;
}

}  // namespace chainfold::test
