// States: partial states of a computation, for whoever has its elements in batches, on several
// threads or machines, or more of them than memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "chainfold/dsl/over.hpp"
#include "chainfold/runtime/kernel.hpp"

namespace chainfold {

/// What the folds of a computation know of some elements, as plain bytes of the caller's:
///
///     auto states = cf::States(cf::over(cf::whole(), cf::mean(x), cf::argmax(x)));
///     std::vector<std::byte> state(states.bytes());
///     states.init(state.data());
///     for (auto batch : batches) states.update(state.data(), {{"x", batch}});
///     auto [mean, best] = states.finalize<float, std::int64_t>(state.data());
///
/// A state is bytes() bytes at a multiple of 8. It may be copied, moved, written to a file and read
/// by another process: it is the same on every target and under every plan, little-endian. Its
/// first 8 bytes are the number of rows it has seen, and the fields of each fold follow, each at a
/// multiple of its own size (codegen/graph/states.hpp).
///
/// Batches give what all elements give at once: bit for bit where the folds are exact, else within
/// their error bounds. An index (argmin, argmax) counts from a state's first row. So states are
/// merged in the order of their elements where folds ask for one; min, max and sums do not.
///
/// Copies share their kernels; all members are thread-safe. Two calls must not write one state at
/// once. A call that throws has written nothing.
class States {
 public:
  /// Compiles three kernels when they are first needed. Throws UserError(unsupported), naming what
  /// it is, for scans, for elements that read folds of their segment or are computed from
  /// cf::index(), and for options that pin a plan.
  explicit States(const Computation& computation, const Options& options = {});

  [[nodiscard]] std::int64_t bytes() const;
  /// Of the folds and their types: states of equal hashes merge, whatever was compiled and where.
  [[nodiscard]] std::uint64_t hash() const;
  /// How many elements a state has seen.
  [[nodiscard]] std::int64_t rows(const void* state) const;

  /// States of nothing.
  void init(void* states, std::int64_t count = 1) const;
  /// Folds a batch, and merges it behind what the state has seen. The computation is over whole().
  void update(void* state, const CallBindings& batch) const;
  /// A state for each segment of a batch, under the computation's own partition, of which `states`
  /// has room for `capacity`. Returns how many there are. Throws UserError(too_small), with nothing
  /// written, where they are more.
  std::int64_t fold(void* states, std::int64_t capacity, const CallBindings& batch) const;
  /// Merges `later[i]` behind `into[i]`. They may be the same memory: a state behind itself.
  void merge(void* into, const void* later, std::int64_t count = 1) const;
  /// The computation's outputs, a value each state. Parameters that outputs read are bound by name.
  template <class... Out>
  std::tuple<HostVector<Out>...> finalize(const void* states, std::int64_t count = 1,
                                          const CallBindings& parameters = {}) const {
    const Columns columns(*this, states, count);
    return finishing().template run<Out...>(bindings(columns, parameters));
  }

  /// States with a header: a magic word, the format's version, hash(), bytes() and their number.
  [[nodiscard]] std::vector<std::byte> serialise(const void* states, std::int64_t count = 1) const;
  /// How many states serialised bytes hold. Throws UserError(invalid_argument), naming what is
  /// wrong, for bytes that serialise() did not write for these folds, or not all of them.
  [[nodiscard]] std::int64_t count_of(std::span<const std::byte> serialised) const;
  /// Reads them into memory that has room for count_of() states; checks as count_of() does.
  void deserialise(std::span<const std::byte> serialised, void* states,
                   std::int64_t capacity) const;

 private:
  struct Shared;
  /// States, field by field.
  class Columns {
   public:
    Columns(const States& of, const void* states, std::int64_t count);
    [[nodiscard]] const void* data(std::size_t field) const { return columns_[field].data(); }
    void* data(std::size_t field) { return columns_[field].data(); }
    [[nodiscard]] std::int64_t count() const { return count_; }
    /// From now on there are the first `count` of them.
    void keep(std::int64_t count) { count_ = count; }

   private:
    std::vector<std::vector<std::byte>> columns_;
    std::int64_t count_ = 0;
  };
  void merge_one(void* into, const void* later) const;
  [[nodiscard]] const Kernel& finishing() const;
  [[nodiscard]] Bindings bindings(const Columns& columns, const Bindings& parameters) const;
  void write(const Columns& columns, void* states) const;
  /// Outputs of a graph of states, one value each field.
  [[nodiscard]] Outputs outputs(Columns& columns) const;

  std::shared_ptr<const Shared> shared_;
};

}  // namespace chainfold
