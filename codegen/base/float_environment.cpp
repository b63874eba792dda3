#include "chainfold/codegen/base/float_environment.hpp"

namespace chainfold::codegen {

DefaultFloatEnvironment::DefaultFloatEnvironment() noexcept {
  std::fegetenv(&saved_);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() { std::fesetenv(&saved_); }

}  // namespace chainfold::codegen
