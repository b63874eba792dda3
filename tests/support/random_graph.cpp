#include "chainfold/tests/support/random_graph.hpp"

#include <optional>
#include <string>
#include <utility>

#include "chainfold/tests/support/monoids.hpp"

namespace chainfold::test {
namespace {

using codegen::Fold;
using codegen::GraphBuilder;
using codegen::kNoNode;
using codegen::NodeId;
using codegen::Op;

/// Folds of a user's own, in order.
const std::vector<Fold>& own_folds() {
  const auto fold_of = [](const Computation& computation) {
    return computation.graph().folds.front();
  };
  static const std::vector<Fold> kFolds = {
      fold_of(over(whole(), fold(longest_run(), input<bool>("x")))),
      fold_of(over(whole(), fold(brackets(), input<bool>("x")))),
      fold_of(over(whole(), fold(continuant(), input<std::uint32_t>("x")))),
      fold_of(over(whole(), fold(horner(), input<std::uint8_t>("x"))))};
  return kFolds;
}

class Writer {
 public:
  Writer(Dice& dice, bool plain) : dice_(dice), plain_(plain) {
    const int inputs = plain ? dice.pick({1, 2}) : dice.pick({0, 1, 1, 1, 1, 2, 2, 3});
    for (int i = 0; i < inputs; ++i) {
      const DType type = any_type();
      const bool packed = type == DType::boolean && dice.chance(70);
      inputs_.emplace_back(type,
                           packed ? codegen::InputAccess::bits : codegen::InputAccess::elements);
    }
  }

  GraphBuilder& builder() { return builder_; }
  /// What the last value a segment is, if it is plain.
  [[nodiscard]] const std::optional<RandomGraph::Plain>& last_plain() const { return last_plain_; }
  [[nodiscard]] const std::vector<std::pair<std::string, codegen::Bits>>& params() const {
    return params_;
  }

  /// A value a segment.
  NodeId of_segment() {
    if (plain_) return of_input();
    const NodeId value = folded();
    const DType type = builder_.type(value);
    if (is_float(type) && dice_.chance(15))
      return convert(value, dice_.pick({DType::f16, DType::bf16, DType::f32, DType::f64}));
    if (!codegen::is_defined(Op::add, type) || dice_.chance(60)) return value;
    const NodeId other = dice_.chance(50) ? of_launch(type) : convert_exact(folded(), type);
    return builder_.compute(dice_.pick({Op::add, Op::sub, Op::mul, Op::max}), {value, other});
  }

  /// A value an element: the running form of one of a segment, and, it may be, what is made of it.
  NodeId of_element(bool exclusive, bool reverse) {
    const NodeId value =
        dice_.chance(6)
            ? recurrence(reverse)
            : builder_.running(of_segment(), {.exclusive = exclusive, .reverse = reverse});
    const DType type = builder_.type(value);
    if (!codegen::is_defined(Op::add, type) || dice_.chance(50)) return value;
    switch (dice_.below(4)) {
      case 0: return builder_.compute(Op::add, {value, of_launch(type)});
      case 1: return builder_.compute(Op::max, {value, expression(type, 1)});
      case 2: return builder_.compute(Op::sub, {value, convert_exact(of_segment(), type)});
      default:
        return builder_.compute(Op::select,
                                {expression(DType::boolean, 1), value, expression(type, 1)});
    }
  }

 private:
  DType any_type() { return static_cast<DType>(dice_.below(kDTypeCount)); }
  DType number() {
    const DType type = any_type();
    return type == DType::boolean ? DType::f16 : type;
  }

  NodeId convert(NodeId value, DType type) {
    return builder_.type(value) == type ? value : builder_.convert(value, type);
  }
  /// Of a float that may be rounded another way only floats can be made: the count otherwise.
  NodeId convert_exact(NodeId value, DType type) {
    if (is_float(builder_.type(value)) && !is_float(type)) value = builder_.count();
    return convert(value, type);
  }

  NodeId leaf(DType type) {
    if (inputs_.empty() || dice_.chance(6)) return convert(builder_.index(), type);
    const auto which = dice_.below(static_cast<std::int64_t>(inputs_.size()));
    const auto [stored, access] = inputs_[static_cast<std::size_t>(which)];
    return convert(builder_.input("x" + std::to_string(which), stored, access), type);
  }

  /// A literal or a parameter.
  NodeId of_launch(DType type) {
    const double small = dice_.pick({0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 100.0});
    const codegen::Bits bits = is_float(type) ? codegen::bits_of_double(type, small)
                               : type == DType::boolean
                                   ? codegen::Bits{small > 0}
                                   : codegen::bits_of_int(type, static_cast<std::int64_t>(small));
    if (dice_.chance(70)) return builder_.literal(type, bits);
    const std::string name = "p_" + std::string(name_of(type));
    for (const auto& [known, value] : params_)
      if (known == name) return builder_.param(name, type);
    params_.emplace_back(name, bits);
    return builder_.param(name, type);
  }

  NodeId condition(int depth) {
    if (dice_.chance(30)) {
      const Op op = dice_.pick({Op::bit_and, Op::bit_or, Op::bit_xor});
      return builder_.compute(
          op, {expression(DType::boolean, depth - 1), expression(DType::boolean, depth - 1)});
    }
    const DType type = dice_.pick({DType::i32, DType::i64, DType::u64, DType::f32, DType::f64});
    const NodeId left = expression(type, depth - 1);
    const NodeId right = dice_.chance(60) ? of_launch(type) : expression(type, depth - 1);
    return builder_.compute(dice_.pick({Op::lt, Op::le, Op::gt, Op::ge, Op::eq, Op::ne}),
                            {left, right});
  }

  /// Of elements.
  NodeId expression(DType type, int depth) {
    if (depth <= 0 || dice_.chance(25)) return leaf(type);
    if (type == DType::boolean) return condition(depth);
    if (const DType computed = compute_type(type); computed != type)
      return convert(expression(computed, depth), type);
    const NodeId a = expression(type, depth - 1);
    const NodeId b = dice_.chance(40) ? of_launch(type) : expression(type, depth - 1);
    switch (dice_.below(8)) {
      case 0:
      case 1: return builder_.compute(Op::add, {a, b});
      case 2: return builder_.compute(Op::sub, {a, b});
      case 3: return builder_.compute(Op::mul, {a, b});
      case 4: return builder_.compute(dice_.pick({Op::min, Op::max}), {a, b});
      case 5: return builder_.compute(dice_.pick({Op::neg, Op::abs, Op::sign}), {a});
      case 6: return builder_.compute(Op::select, {expression(DType::boolean, depth - 1), a, b});
      default:
        return is_float(type)
                   ? builder_.compute(dice_.pick({Op::floor, Op::ceil, Op::round}), {a})
                   : builder_.compute(dice_.pick({Op::div, Op::rem, Op::bit_xor, Op::shr}), {a, b});
    }
  }

  /// A fold of elements as they are, whose results are numbers where partial results need not be.
  NodeId of_input() {
    std::string name;
    const auto input = [&] {
      const auto which = dice_.below(static_cast<std::int64_t>(inputs_.size()));
      const auto [stored, access] = inputs_[static_cast<std::size_t>(which)];
      name = "x" + std::to_string(which);
      return builder_.input(name, stored, access);
    };
    last_plain_.reset();
    const NodeId x = input(), filter = dice_.chance(80) ? kNoNode : expression(DType::boolean, 1);
    const bool is_bool = builder_.type(x) == DType::boolean;
    const NodeId number = is_bool ? convert(x, DType::f32) : x;
    switch (dice_.below(8)) {
      case 0:
      case 1: return builder_.sum(x, filter);
      case 2:
      case 3:
        if (filter == kNoNode)
          last_plain_ = {.kind = RandomGraph::Plain::Kind::mean, .input = name};
        return builder_.mean(x, filter);
      case 4:
        if (filter == kNoNode)
          last_plain_ = {.kind = RandomGraph::Plain::Kind::norm, .input = name};
        return builder_.norm(number, filter);
      case 5: return builder_.variance(number, filter);
      case 6: return builder_.stddev(number, filter);
      default: return builder_.correlation(number, convert(input(), builder_.type(number)), filter);
    }
  }

  NodeId recurrence(bool reverse) {
    const DType type = dice_.pick({DType::f32, DType::f32, DType::f64});
    const NodeId value = expression(type, 1);
    const NodeId factor = dice_.chance(50) ? of_launch(type) : expression(type, 1);
    const NodeId initial = dice_.chance(50) ? kNoNode : of_launch(type);
    return builder_.recurrence(factor, value, initial, reverse, type);
  }

  NodeId folded() {
    const NodeId filter = dice_.chance(75) ? kNoNode : expression(DType::boolean, 2);
    const int depth = dice_.pick({0, 0, 1, 2});
    switch (dice_.below(17)) {
      case 0: return builder_.min(expression(number(), depth), filter);
      case 1: return builder_.max(expression(number(), depth), filter);
      case 2: return builder_.mean(expression(any_type(), depth), filter);
      case 3: return builder_.variance(expression(any_type(), depth), filter);
      case 4: return builder_.count(expression(DType::boolean, 2));
      case 5: return builder_.argmin(expression(number(), depth), filter);
      case 6: return builder_.argmax(expression(number(), depth), filter);
      case 7: return builder_.product(expression(DType::i32, depth), filter);
      case 8: {
        const DType type = dice_.pick({DType::u8, DType::i16, DType::i32, DType::u64});
        const Op op = dice_.pick({Op::bit_and, Op::bit_or, Op::bit_xor});
        return builder_.fold(codegen::make_bits(op, type), {expression(type, depth)}, filter);
      }
      case 9: {
        const bool any = dice_.chance(50);
        return builder_.fold(any ? codegen::make_any() : codegen::make_all(),
                             {expression(DType::boolean, 2)}, filter);
      }
      case 10: {
        const Fold& own = dice_.of(own_folds());
        return builder_.fold(own, {expression(own.operands[0], depth)}, filter);
      }
      case 15: return builder_.stddev(expression(number(), depth), filter);
      case 16: {
        const NodeId value = expression(number(), depth), one = builder_.constant(DType::i64, 1);
        const NodeId other = convert(expression(number(), depth), builder_.type(value));
        return dice_.chance(50) ? builder_.covariance(value, other, filter, one)
                                : builder_.skewness(value, filter);
      }
      case 11: {
        const NodeId value = expression(number(), depth);
        return builder_.norm(value, filter, mean_type(builder_.type(value)));
      }
      default: return builder_.sum(expression(any_type(), depth), filter);
    }
  }

  Dice& dice_;
  bool plain_;
  std::optional<RandomGraph::Plain> last_plain_;
  GraphBuilder builder_;
  std::vector<std::pair<DType, codegen::InputAccess>> inputs_;
  std::vector<std::pair<std::string, codegen::Bits>> params_;
};

}  // namespace

RandomGraph make_random_graph(Dice& dice, bool scans, const codegen::Partition& partition,
                              bool plain) {
  Writer writer(dice, plain);
  std::vector<NodeId> outputs;
  const int count = dice.pick({1, 1, 2, 3});
  const int direction = dice.pick({0, 0, 1, 2});  // forward, backward, both
  std::vector<RandomGraph::Plain> plains;
  for (int i = 0; i < count; ++i) {
    const bool reverse = direction == 2 ? dice.chance(50) : direction == 1;
    if (scans && (i == 0 || dice.chance(70))) {
      outputs.push_back(writer.of_element(dice.chance(45), reverse));
      continue;
    }
    outputs.push_back(writer.of_segment());
    if (!writer.last_plain()) continue;
    plains.push_back(*writer.last_plain());
    plains.back().output = static_cast<std::size_t>(i);
  }
  const NodeId condition =
      partition.kind == codegen::Partition::Kind::heads
          ? writer.builder().input(
                "begins", DType::boolean,
                dice.chance(50) ? codegen::InputAccess::bits : codegen::InputAccess::elements)
          : kNoNode;
  RandomGraph made{.graph = writer.builder().finish(outputs, partition, condition),
                   .params = {},
                   .plain = scans ? std::vector<RandomGraph::Plain>{} : std::move(plains)};
  for (const codegen::GraphParam& param : made.graph.params)
    for (const auto& [name, bits] : writer.params())
      if (name == param.name) made.params.push_back(bits);
  return made;
}

}  // namespace chainfold::test
