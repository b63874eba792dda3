#include "chainfold/codegen/interp/interp.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/interp/machine.hpp"

namespace chainfold::codegen {
namespace {

constexpr int kMostStepsInARow = 32;  // Schedule::random switches warps at the latest after so many

struct Block {
  BlockState state;
  std::vector<Warp> warps;
};

/// Runs the blocks of one launch, InterpOptions::resident_blocks at a time, in the schedule's
/// order.
class Scheduler {
 public:
  Scheduler(LaunchContext& context, std::int64_t grid, const InterpOptions& options)
      : context_(context), options_(options), random_(options.seed), count_(grid) {
    if (!options.blocks.empty()) {
      std::copy_if(options.blocks.begin(), options.blocks.end(), std::back_inserter(order_),
                   [&](std::int64_t block) { return block < grid; });
      count_ = static_cast<std::int64_t>(order_.size());
    } else if (is_random()) {
      order_.resize(static_cast<std::size_t>(grid));
      std::iota(order_.begin(), order_.end(), std::int64_t{0});
    }
    if (is_random()) shuffle();
    // Blocks of a cluster run at the same time.
    const int cluster = context.launch.cluster;
    const int clusters = (std::max(1, options.resident_blocks) - 1) / cluster + 1;
    const std::int64_t resident = std::min<std::int64_t>(count_, std::int64_t{clusters} * cluster);
    for (std::int64_t i = 0; i < resident; ++i) {
      blocks_.push_back(std::make_unique<Block>());
      blocks_.back()->warps.resize(static_cast<std::size_t>(context.launch.warps));
      start(*blocks_.back());
    }
  }

  void run() {
    while (!blocks_.empty()) {
      const std::size_t first = is_random() ? random_() % blocks_.size() : 0;
      std::size_t tried = 0;
      while (tried < blocks_.size() && !advance((first + tried) % blocks_.size())) ++tried;
      if (tried < blocks_.size()) continue;
      for (const auto& block : blocks_) {
        if (const Warp* warp = find(*block, WarpStatus::waiting)) warp->fail_waiting();
      }
    }
  }

 private:
  bool is_random() const { return options_.schedule == Schedule::random; }

  // Puts the blocks into any order, those of a cluster one behind the other.
  void shuffle() {
    std::shuffle(order_.begin(), order_.end(), random_);
    if (context_.launch.cluster == 1) return;
    std::map<std::int64_t, std::vector<std::int64_t>> blocks;  // of each cluster
    std::vector<std::int64_t> clusters;
    for (const std::int64_t block : order_) {
      const std::int64_t cluster = block / context_.launch.cluster;
      if (blocks[cluster].empty()) clusters.push_back(cluster);
      blocks[cluster].push_back(block);
    }
    order_.clear();
    for (const std::int64_t cluster : clusters)
      order_.insert(order_.end(), blocks[cluster].begin(), blocks[cluster].end());
  }

  // Lets a block do something; false if all it could do is wait for other blocks.
  bool advance(std::size_t at) {
    Block& block = *blocks_[at];
    if (run_warp(block)) return true;
    if (find(block, WarpStatus::waiting) != nullptr) return false;
    if (Warp* waiting = find(block, WarpStatus::at_barrier)) {
      pass_barrier(block, *waiting);
      return true;
    }
    std::unique_ptr<Block> finished = std::move(blocks_[at]);
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
    if (started_ == count_) return true;
    start(*finished);
    blocks_.push_back(std::move(finished));
    return true;
  }

  void start(Block& block) {
    const std::int64_t next = started_++;
    const std::int64_t at = options_.schedule == Schedule::reversed ? count_ - 1 - next : next;
    block.state.index = order_.empty() ? at : order_[static_cast<std::size_t>(at)];
    block.state.epoch = 0;
    block.state.has_ticket = false;
    block.state.shared.resize(context_.launch.shared.size());
    for (std::size_t i = 0; i < block.state.shared.size(); ++i) {
      block.state.shared[i].reset(static_cast<std::size_t>(context_.launch.shared[i].elements));
    }
    block.state.rings.clear();
    for (const CopyRing& ring : context_.launch.rings)
      block.state.rings.emplace_back(static_cast<std::size_t>(ring.slots));
    for (std::size_t w = 0; w < block.warps.size(); ++w) {
      block.warps[w].start(context_, block.state, static_cast<int>(w));
    }
  }

  // Lets one runnable warp of the block run for a while; false if there is none.
  bool run_warp(Block& block) {
    runnable_.clear();
    for (Warp& warp : block.warps) {
      if (warp.status() == WarpStatus::waiting) warp.look_again();
      if (warp.status() == WarpStatus::ready) runnable_.push_back(&warp);
    }
    if (runnable_.empty()) return false;
    const std::size_t last = runnable_.size() - 1;
    const std::size_t chosen = is_random()                               ? random_() % (last + 1)
                               : options_.schedule == Schedule::reversed ? last
                                                                         : 0;
    Warp& warp = *runnable_[chosen];
    std::uint64_t steps = is_random() ? 1 + random_() % kMostStepsInARow : ~std::uint64_t{0};
    while (warp.status() == WarpStatus::ready && steps-- > 0) warp.step();
    return true;
  }

  static Warp* find(Block& block, WarpStatus status) {
    const auto found = std::find_if(block.warps.begin(), block.warps.end(),
                                    [&](const Warp& warp) { return warp.status() == status; });
    return found == block.warps.end() ? nullptr : &*found;
  }

  // No warp of the block can run and one waits: all must wait, and at the same barrier.
  static void pass_barrier(Block& block, Warp& waiting) {
    for (const Warp& warp : block.warps) {
      if (warp.status() == WarpStatus::done) {
        waiting.fail(
            fmt::format("a deadlock: warp {} ended without reaching this barrier", warp.index()));
      }
      if (warp.barrier() != waiting.barrier()) {
        waiting.fail(fmt::format("a deadlock: warp {} waits at another barrier", warp.index()));
      }
    }
    ++block.state.epoch;
    waiting.take_ticket();
    for (Warp& warp : block.warps) warp.pass_barrier();
  }

  LaunchContext& context_;
  const InterpOptions& options_;
  std::mt19937_64 random_;
  std::int64_t count_;  // of the blocks that run
  std::int64_t started_ = 0;
  std::vector<std::int64_t> order_;             // empty: as they are numbered
  std::vector<std::unique_ptr<Block>> blocks_;  // by pointer: warps hold their block's state
  std::vector<Warp*> runnable_;
};

// Finds the inputs in whose memory outputs lie.
void share_memory(const Program& program, std::vector<GlobalArray>& memory) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    for (std::size_t j = 0; j < memory.size(); ++j) {
      const Buffer &a = program.buffers[i], &b = program.buffers[j];
      const bool input = a.role == BufferRole::input;
      if (b.role == BufferRole::input || (!input && j <= i) || !memory[i].overlaps(memory[j]))
        continue;
      if (!program.in_place || !input || b.role != BufferRole::output)
        throw InternalError(fmt::format("buffers {} and {} overlap", a.name, b.name));
      memory[i].lies_on(memory[j]);
    }
  }
}

}  // namespace

void interpret(const Program& program, std::span<const InterpBuffer> buffers,
               std::span<const std::uint64_t> params, const InterpOptions& options, int only) {
  if (buffers.size() != program.buffers.size() || params.size() != program.params.size()) {
    throw InternalError(fmt::format(
        "program {} has {} buffers and {} parameters; {} and {} were given", program.name,
        program.buffers.size(), program.params.size(), buffers.size(), params.size()));
  }
  const auto launches = static_cast<int>(program.launches.size());
  if (only >= launches)
    throw InternalError(fmt::format("program {} has no launch {}", program.name, only));
  std::vector<GlobalArray> memory;
  memory.reserve(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i)
    memory.emplace_back(program.buffers[i], buffers[i], only > 0 || !options.blocks.empty());
  share_memory(program, memory);
  for (int i = 0; i < launches; ++i) {
    if (only >= 0 && i != only) continue;
    LaunchContext context(program, i, memory, params, options);
    const std::int64_t grid = context.launch.grid.evaluate(params);
    if (grid < 0)
      throw InternalError(fmt::format("launch {}: a grid of {} blocks", context.launch.name, grid));
    if (grid % context.launch.cluster != 0)
      throw InternalError(fmt::format("launch {}: {} blocks are no clusters of {}",
                                      context.launch.name, grid, context.launch.cluster));
    Scheduler(context, grid, options).run();
  }
}

}  // namespace chainfold::codegen
