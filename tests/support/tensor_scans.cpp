#include "chainfold/tests/support/tensor_scans.hpp"

namespace chainfold::test {

namespace {

namespace cf = chainfold;
using P = cf::dsl::Partition;

template <class T>
void add_scans(std::vector<TestProgram>& list, const std::string& type) {
  list.push_back({.name = "running_sum_" + type, .over = [](const P& p) {
                    return cf::over(p, cf::inclusive_sum(cf::input<T>("x")));
                  }});
  list.push_back({.name = "sum_before_" + type, .over = [](const P& p) {
                    return cf::over(p, cf::exclusive_sum(cf::input<T>("x")));
                  }});
  list.push_back({.name = "running_sum_back_" + type, .over = [](const P& p) {
                    return cf::over(p, cf::inclusive(cf::sum(cf::input<T>("x")), cf::backward));
                  }});
  list.push_back({.name = "sum_behind_" + type, .over = [](const P& p) {
                    return cf::over(p, cf::exclusive(cf::sum(cf::input<T>("x")), cf::backward));
                  }});
}

}  // namespace

const std::vector<TestProgram>& tensor_scans() {
  static const std::vector<TestProgram> all = [] {
    std::vector<TestProgram> list;
    add_scans<f16>(list, "f16");
    add_scans<bf16>(list, "bf16");
    add_scans<std::int8_t>(list, "i8");
    add_scans<std::uint8_t>(list, "u8");
    list.push_back({.name = "running_sum_to_f16", .over = [](const P& p) {
                      auto x = cf::input<f16>("x");
                      return cf::over(p, cf::cast<f16>(cf::inclusive_sum(x)));
                    }});
    list.push_back({.name = "running_sum_to_bf16", .over = [](const P& p) {
                      auto x = cf::input<bf16>("x");
                      return cf::over(p, cf::cast<bf16>(cf::inclusive_sum(x)));
                    }});
    // A scan by lanes, one by quads, and folds of both kinds.
    list.push_back({.name = "scans_and_folds_f16", .over = [](const P& p) {
                      auto x = cf::input<f16>("x");
                      return cf::over(p, cf::inclusive_sum(x), cf::inclusive(cf::max(x)),
                                      cf::sum(x), cf::min(x));
                    }});
    return list;
  }();
  return all;
}

}  // namespace chainfold::test
