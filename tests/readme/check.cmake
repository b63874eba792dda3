# Checks that README compiles with the one header: its ```cpp blocks, in order, as one program, in which a
# block sees those before it and may use their names anew; and every cf::name that the text mentions.
file(READ ${README} text)

# What the text leaves to its reader.
set(names "\
std::vector<chainfold::f16> samples;
auto y = chainfold::input<float>(\"y\");
chainfold::f16* device_x = nullptr;
float *device_mean = nullptr, *device_rms = nullptr;
std::int64_t n = 0;
void* stream = nullptr;
")
set(includes "#include <cstdint>\n#include <vector>\n")
set(body "")
set(ends "")
set(count 0)
set(line 1)
set(rest "${text}")
string(FIND "${rest}" "\n```cpp\n" begin)
while(NOT begin EQUAL -1)
  math(EXPR begin "${begin} + 8")
  string(SUBSTRING "${rest}" 0 ${begin} before)
  string(SUBSTRING "${rest}" ${begin} -1 rest)
  string(REGEX MATCHALL "\n" lines "${before}")
  list(LENGTH lines lines)
  math(EXPR line "${line} + ${lines}")
  string(FIND "${rest}" "\n```" end)
  if(end EQUAL -1)
    message(FATAL_ERROR "${README}:${line}: this block has no end")
  endif()
  string(SUBSTRING "${rest}" 0 ${end} block)
  string(REGEX MATCHALL "#include[^\n]*\n" found "${block}\n")
  foreach(include IN LISTS found)
    string(APPEND includes "${include}")
  endforeach()
  string(REGEX REPLACE "#include[^\n]*" "" block "${block}")
  string(APPEND body "{\n#line ${line} \"${README}\"\n${block}\n")
  string(APPEND ends "}")
  math(EXPR count "${count} + 1")
  string(FIND "${rest}" "\n```cpp\n" begin)
endwhile()
if(count EQUAL 0)
  message(FATAL_ERROR "${README}: has no \`\`\`cpp block")
endif()

string(REGEX MATCHALL "cf::[A-Za-z_0-9]+" mentioned "${text}")
list(REMOVE_DUPLICATES mentioned)
set(known "")
foreach(name IN LISTS mentioned)
  string(REPLACE "cf::" "using chainfold::" name "${name}")
  string(APPEND known "${name};\n")
endforeach()

file(WRITE ${OUT} "${includes}
namespace mentioned {
${known}}
void blocks() {
${names}${body}${ends}
}
")
set(ENV{LC_ALL} C)
execute_process(
  COMMAND ${COMPILER} -std=c++20 -fsyntax-only -fdiagnostics-color=never -I${INCLUDE} ${OUT}
  RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log)
if(NOT status EQUAL 0)
  message("${log}")
  message(FATAL_ERROR "${README}: its blocks do not compile as ${OUT}")
endif()
message("${count} blocks compile")
