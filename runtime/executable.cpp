#include "chainfold/runtime/executable.hpp"

#include <algorithm>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/error.hpp"
#include "chainfold/runtime/jit_llvm.hpp"
#include "chainfold/runtime/jit_nvrtc.hpp"
#include "chainfold/runtime/module.hpp"

namespace chainfold::runtime {

namespace {

class CudaExecutable final : public Executable {
 public:
  CudaExecutable(const codegen::Program& program, const codegen::Source& source,
                 const codegen::Target& target, int device)
      : cubin_(compile_cubin(source.text, {.arch = target.arch})),
        module_(Context::of(device), cubin_.image, source.symbols) {
    for (const codegen::Launch& launch : program.launches) {
      threads_.push_back(static_cast<unsigned>(launch.warps) * codegen::kWarpWidth);
    }
    cubin_.image.clear();
    cubin_.image.shrink_to_fit();
  }
  void launch(std::size_t index, std::int64_t blocks, const std::uint64_t* slots, std::size_t count,
              void* stream) const override {
    if (blocks > std::numeric_limits<std::int32_t>::max()) {
      throw UserError(ErrorCode::invalid_argument,
                      "the launch needs more blocks than a grid holds; split the input");
    }
    module_.launch(index, {.x = static_cast<unsigned>(blocks)}, threads_[index], 0,
                   static_cast<StreamHandle>(stream), slots, count);
  }
  [[nodiscard]] double compile_ms() const override { return cubin_.compile_ms; }

 private:
  Cubin cubin_;
  CudaModule module_;
  std::vector<unsigned> threads_;
};

class CpuExecutable final : public Executable {
 public:
  explicit CpuExecutable(const codegen::Source& source)
      : module_(CpuModule::compile(source.text, source.symbols)) {}
  void launch(std::size_t index, std::int64_t blocks, const std::uint64_t* slots, std::size_t,
              void*) const override {
    // Few blocks are worth a thread each (they are parts); many are shared out in runs.
    constexpr std::int64_t kRuns = 512;
    module_->run(index, blocks, std::max<std::int64_t>(1, blocks / kRuns), slots);
  }
  [[nodiscard]] double compile_ms() const override { return module_->compile_ms(); }

 private:
  std::shared_ptr<const CpuModule> module_;
};

using Future = std::shared_future<std::shared_ptr<const Executable>>;
struct Cache {
  std::mutex mutex;
  std::map<std::pair<int, std::string>, Future> entries;  // device, source text
};
// Never destroyed: executables may outlive the statics of whoever holds them.
Cache& cache() {
  static auto* cache = new Cache;
  return *cache;
}

}  // namespace

std::shared_ptr<const Executable> load_executable(const codegen::Program& program,
                                                  const codegen::Target& target, int device,
                                                  bool& reused) {
  const codegen::Source source = codegen::emit(program, target);
  const std::pair<int, std::string> key(device, source.text);
  std::promise<std::shared_ptr<const Executable>> promise;
  Future future;
  {
    const std::lock_guard lock(cache().mutex);
    auto [it, inserted] = cache().entries.try_emplace(key);
    if (inserted) it->second = promise.get_future().share();
    future = it->second;
    reused = !inserted;
  }
  if (reused) return future.get();
  try {
    std::shared_ptr<const Executable> executable;
    if (target.backend == codegen::Backend::cuda) {
      executable = std::make_shared<CudaExecutable>(program, source, target, device);
    } else {
      executable = std::make_shared<CpuExecutable>(source);
    }
    promise.set_value(executable);
    return executable;
  } catch (...) {
    // Whoever waits learns the reason; the next call may try again (a library may have appeared).
    {
      const std::lock_guard lock(cache().mutex);
      cache().entries.erase(key);
    }
    promise.set_exception(std::current_exception());
    throw;
  }
}

}  // namespace chainfold::runtime
