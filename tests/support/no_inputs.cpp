#include "chainfold/tests/support/no_inputs.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {

namespace {

namespace cf = chainfold;

/// Elements of one segment of `elements`: a whole, a row or a column.
struct Shape {
  std::int64_t segments = 1, size = 0;
  bool columns = false;
  /// Where element i of a segment lies.
  [[nodiscard]] std::int64_t at(std::int64_t segment, std::int64_t i) const {
    return columns ? i * segments + segment : segment * size + i;
  }
};
Shape shape_of(const codegen::Partition& partition, std::int64_t elements) {
  const std::int64_t size = partition.size;
  switch (partition.kind) {
    case codegen::Partition::Kind::whole: return {.size = elements};
    case codegen::Partition::Kind::columns:
      return {.segments = size, .size = elements / size, .columns = true};
    default: return {.segments = (elements + size - 1) / size, .size = size};
  }
}

/// Outputs of `counted` against loops.
std::string against_loops(const std::vector<Column>& outputs, const Shape& shape,
                          std::int64_t elements) {
  for (std::int64_t s = 0; s < shape.segments; ++s) {
    std::int64_t count = 0, sum = 0, odd = 0;
    for (std::int64_t i = 0; i < shape.size && shape.at(s, i) < elements; ++i) {
      ++count;
      sum += i;
      odd += i % 2;
      if (shape.columns) continue;
      const auto running = static_cast<std::int64_t>(outputs[3].get(shape.at(s, i)));
      if (running != sum)
        return fmt::format("running sum {} of segment {}: {} instead of {}", i, s, running, sum);
    }
    const std::int64_t right[] = {count, sum, odd};
    for (std::size_t o = 0; o < 3; ++o) {
      const auto got = static_cast<std::int64_t>(outputs[o].get(s));
      if (got != right[o])
        return fmt::format("output {} of segment {}: {} instead of {}", o, s, got, right[o]);
    }
  }
  return {};
}

Computation counted(const dsl::Partition& partition) {
  const auto odd = cf::count(cf::where(cf::index() % 2 == 1));
  if (partition.kind == codegen::Partition::Kind::columns)  // which have no scans
    return cf::over(partition, cf::count(), cf::sum(cf::index()), odd);
  return cf::over(partition, cf::count(), cf::sum(cf::index()), odd,
                  cf::inclusive_sum(cf::index()));
}

}  // namespace

std::int64_t segments_of(const Computation& computation, std::int64_t elements) {
  return shape_of(computation.graph().partition, elements).segments;
}

std::vector<Column> launch_on_host(const Kernel& kernel, const Computation& computation,
                                   std::int64_t elements) {
  LaunchArgs args{.elements = elements};
  std::vector<Column> outputs =
      poisoned_outputs(computation.graph(), segments_of(computation, elements), elements);
  for (Column& output : outputs)
    args.outputs.push_back(OutputBinding(output.data(), output.type(), output.count()));
  const std::int64_t bytes = kernel.scratch_bytes(args);
  std::vector<std::max_align_t> scratch(static_cast<std::size_t>(bytes) / sizeof(std::max_align_t) +
                                        1);
  if (bytes > 0) args.scratch = {scratch.data(), bytes};
  kernel.prepare(args);
  kernel.launch(args);
  return outputs;
}

std::string check_no_inputs(const Options& options, std::int64_t most,
                            const NoInputsLaunch& launch) {
  std::string problems;
  const auto say = [&](const std::string& where, const std::string& what) {
    if (!what.empty()) problems += fmt::format("{}: {}\n", where, what);
  };
  const struct {
    const char* name;
    dsl::Partition partition;
    std::int64_t multiple;
  } partitions[] = {
      {"whole", cf::whole(), 1},
      {"segments of 7", cf::segments(7), 7},
      {"segments of 16", cf::segments(16), 16},
      {"segments of 1000", cf::segments(1000), 1000},
      {"segments of 5000 with a tail", cf::segments(5000, cf::Tail::partial), 1},
      {"3 columns", cf::columns(3), 3},
      {"64 columns", cf::columns(64), 64},
  };
  for (const auto& [name, partition, multiple] : partitions) {
    const Computation all = counted(partition);
    const Kernel kernel = cf::compile(all, options);
    for (const std::int64_t about :
         {std::int64_t{1}, std::int64_t{1000}, std::int64_t{65'537}, most}) {
      const std::int64_t n = std::max(std::int64_t{1}, about / multiple) * multiple;
      say(fmt::format("{} elements, {}", n, name),
          against_loops(launch(kernel, all, n), shape_of(all.graph().partition, n), n));
    }
    // Nothing is read and nothing but one value a segment is written.
    const Computation one = cf::over(partition, cf::count());
    const Kernel counts = cf::compile(one, options);
    const std::int64_t n = 1000 * multiple;
    const auto total = launch(counts, one, n);
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < total[0].count(); ++i)
      sum += static_cast<std::int64_t>(total[0].get(i));
    say(name, sum == n ? "" : fmt::format("{} elements counted instead of {}", sum, n));
    say(name, cf::explain(one, options).find("0 bytes read an element") != std::string::npos
                  ? ""
                  : "explain() does not tell that nothing is read");
    try {
      (void)counts.run<std::int64_t>(CallBindings{});
      say(name, "run() cannot know how many elements there are, and did not say so");
    } catch (const UserError& error) {
      const std::string what = error.what();
      say(name, what.find("launch()") != std::string::npos ? "" : what);
    }
  }
  return problems;
}

}  // namespace chainfold::test
