# The parts of the benchmark that need no device: files that go on, void rows, progress. Tests use them, too.
include_guard(GLOBAL)
set(CHAINFOLD_COMMIT "" CACHE STRING "Commit that the benchmark reports (default: asked of Git when it runs)")
add_library(chainfold_bench_parts OBJECT)
foreach(part report results_file cases typed_folds compile_cases reference contest reduce_cases scan_cases folds_cases ragged_cases papers_cases plans_cases suite_reduce)
  target_sources(chainfold_bench_parts PRIVATE ${CMAKE_CURRENT_LIST_DIR}/${part}.cpp)
endforeach()
target_link_libraries(chainfold_bench_parts PRIVATE chainfold::chainfold chainfold_options
  chainfold_fmt nlohmann_json::nlohmann_json)
if(CHAINFOLD_SANITIZE)  # only for the tests of them, which are short
  target_compile_options(chainfold_bench_parts PRIVATE -O0)
endif()
if(CHAINFOLD_COMMIT)
  target_compile_definitions(chainfold_bench_parts PRIVATE CHAINFOLD_COMMIT="${CHAINFOLD_COMMIT}")
endif()
