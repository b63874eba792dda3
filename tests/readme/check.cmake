# Checks a document of users: its C++ compiles and runs, what it says is printed is printed, names exist,
# links lead somewhere. Whatever fails is told with its line in the document.
#
#     cmake -DDOCUMENT=docs/guide.md -DOUT=FOLDER -DCOMPILER=g++ -DINCLUDE=build/release/include
#           [-DLIBRARY=build/release/lib/libchainfold.so [-DTBB=libtbb.so]] [-DNO_BLOCKS=ON]
#           -P tests/readme/check.cmake
#
# With LIBRARY what compiles is also linked and run, on the CPU; without it is compiled alone.
#
# What a document has
# - A ```cpp block. All of a document, in order, are one program: a block sees what those before it have
#   declared and may use their names anew. Its #includes come first. What throws fails the test.
# - A ```cpp block with a main() is a program of its own.
# - "<!-- cpp", C++, "-->", each on lines of their own: a block that readers do not see. It gives others what
#   they leave to their reader, or holds them to something: check(condition) fails the test where it is false.
# - "<!-- compiled, not run -->" before a block. No other block sees its names.
# - "<!-- printed -->" before a block of another language: it is what the programs print. "..." stands for
#   what is left out, of lines or within one.
cmake_minimum_required(VERSION 3.25)

# What every document leaves to its reader. On a CPU memory of the device is memory of the host.
set(names "\
std::vector<chainfold::f16> samples(6400, chainfold::f16(0.5F));
auto y = chainfold::input<float>(\"y\");
const std::int64_t n = static_cast<std::int64_t>(samples.size());
std::vector<float> document_mean(samples.size()), document_rms(samples.size());
const chainfold::f16* device_x = samples.data();
float *device_mean = document_mean.data(), *device_rms = document_rms.data();
void* stream = nullptr;
")

foreach(path DOCUMENT OUT LIBRARY TBB)
  if(${path})
    get_filename_component(${path} ${${path}} ABSOLUTE)
  endif()
endforeach()
get_filename_component(name ${DOCUMENT} NAME_WE)
get_filename_component(folder ${DOCUMENT} DIRECTORY)
set(ENV{LC_ALL} C)
set(compile ${COMPILER} -std=c++20 -fdiagnostics-color=never -I${INCLUDE})
if(LIBRARY)
  get_filename_component(libraries ${LIBRARY} DIRECTORY)
  set(link ${LIBRARY} ${TBB} -Wl,-rpath,${libraries})
endif()
file(MAKE_DIRECTORY ${OUT})

set(printed "")
# Compiles a source and, where there is a library, runs it; appends what it prints to `printed`.
function(build_and_run source)
  set(program ${source}.program)
  if(LIBRARY)
    set(command ${compile} -O0 ${source} -o ${program} ${link})
  else()
    set(command ${compile} -fsyntax-only ${source})
  endif()
  execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log)
  if(NOT status EQUAL 0)
    message("${log}")
    message(FATAL_ERROR "${DOCUMENT}: its blocks do not compile as ${source}")
  endif()
  if(NOT LIBRARY)
    return()
  endif()
  # Without a driver there is no GPU, without NVRTC explain() is fast; users' caches are not the tests'.
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env CHAINFOLD_LIBCUDA=none CHAINFOLD_NVRTC=none CHAINFOLD_CACHE_DIR= ${program}
    WORKING_DIRECTORY ${OUT} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE log)
  if(NOT status EQUAL 0)
    message("${log}")
    message(FATAL_ERROR "${DOCUMENT}: ${program} failed (${status}) at the last line that is told above")
  endif()
  set(printed "${printed}${out}" PARENT_SCOPE)
endfunction()

# Whether `printed` has the pieces of `expected`, in order.
function(check_printed expected line)
  set(rest "\n${printed}")
  string(REPLACE "\n...\n" "\n..." left "\n${expected}")
  set(left "${left}...")
  string(FIND "${left}" "..." end)
  while(NOT end EQUAL -1)
    string(SUBSTRING "${left}" 0 ${end} piece)
    math(EXPR end "${end} + 3")
    string(SUBSTRING "${left}" ${end} -1 left)
    string(FIND "${rest}" "${piece}" at)
    if(at EQUAL -1)
      message("${printed}")
      message(FATAL_ERROR "${DOCUMENT}:${line}: this is not what is printed, which stands above:\n${piece}")
    endif()
    string(LENGTH "${piece}" length)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(FIND "${left}" "..." end)
  endwhile()
endfunction()

# Whether a link leads to a file or a folder, and to a heading of it where it names one.
function(check_link link line)
  if(link MATCHES "^[a-z]+:")
    return()
  endif()
  string(REGEX REPLACE "#.*" "" path "${link}")
  set(target ${DOCUMENT})
  if(NOT path STREQUAL "")
    set(target ${folder}/${path})
  endif()
  if(NOT EXISTS ${target})
    message(FATAL_ERROR "${DOCUMENT}:${line}: there is no ${target}")
  endif()
  if(link MATCHES "#(.+)")
    set(wanted "${CMAKE_MATCH_1}")
    file(STRINGS ${target} headings REGEX "^#+ ")
    foreach(heading IN LISTS headings)
      string(TOLOWER "${heading}" heading)
      string(REGEX REPLACE "^#+ +" "" heading "${heading}")
      string(REGEX REPLACE "[^a-z0-9 _-]" "" heading "${heading}")
      string(REPLACE " " "-" heading "${heading}")
      if(heading STREQUAL wanted)
        return()
      endif()
    endforeach()
    message(FATAL_ERROR "${DOCUMENT}:${line}: ${target} has no heading #${wanted}")
  endif()
endfunction()

# The document, line by line.
file(READ ${DOCUMENT} text)
set(includes "#include <cstdint>\n#include <exception>\n#include <iostream>\n#include <vector>\n")
set(body "")
set(ends "")
set(count 0)
set(line 0)
set(inside "")          # the language of the block; "hidden" of what readers do not see
set(runs TRUE)          # the next block does
set(is_printed FALSE)   # the next block is
set(expected_lines "")  # of blocks that are, whose texts are expected_LINE
set(mentioned "")       # every cf::name of the text, and the declarations that ask for them
set(known "")
set(programs "")
set(rest "${text}\n")
string(FIND "${rest}" "\n" end)
while(NOT end EQUAL -1)
  string(SUBSTRING "${rest}" 0 ${end} words)
  math(EXPR end "${end} + 1")
  string(SUBSTRING "${rest}" ${end} -1 rest)
  string(FIND "${rest}" "\n" end)
  math(EXPR line "${line} + 1")

  string(REGEX MATCHALL "cf::[A-Za-z_0-9]+" names_here "${words}")
  foreach(mention IN LISTS names_here)
    if(NOT mention IN_LIST mentioned)
      list(APPEND mentioned ${mention})
      string(REPLACE "cf::" "using chainfold::" mention "${mention}")
      string(APPEND known "#line ${line} \"${DOCUMENT}\"\n${mention};\n")
    endif()
  endforeach()

  if(inside STREQUAL "")
    if(words MATCHES "^```(c\\+\\+|cc|cxx|C|C\\+\\+)")
      message(FATAL_ERROR "${DOCUMENT}:${line}: blocks of C++ begin with ```cpp, or nothing compiles them")
    endif()
    if(words MATCHES "^```([a-z]*)")
      set(inside "${CMAKE_MATCH_1}")
      if(inside STREQUAL "")
        set(inside "plain")
      endif()
    elseif(words STREQUAL "<!-- cpp")
      set(inside "hidden")
    elseif(words STREQUAL "<!-- compiled, not run -->")
      set(runs FALSE)
      continue()
    elseif(words STREQUAL "<!-- printed -->")
      set(is_printed TRUE)
      continue()
    else()
      string(REGEX REPLACE "`[^`]*`" "" words "${words}")
      while(words MATCHES "\\]\\(([^() ]+)\\)(.*)$")
        set(words "${CMAKE_MATCH_2}")
        check_link("${CMAKE_MATCH_1}" ${line})
      endwhile()
      if(words MATCHES "^\\[[^]]+\\]: ([^ ]+)$")  # a link that the text names in brackets
        check_link("${CMAKE_MATCH_1}" ${line})
      endif()
    endif()
    math(EXPR begin "${line} + 1")
    set(block "")
    continue()
  endif()
  if(NOT words STREQUAL "```" AND NOT (inside STREQUAL "hidden" AND words STREQUAL "-->"))
    string(APPEND block "${words}\n")
    continue()
  endif()

  # A block has ended.
  if(NOT inside MATCHES "^(cpp|hidden)$")
    if(is_printed)
      list(APPEND expected_lines ${begin})
      set(expected_${begin} "${block}")
      set(is_printed FALSE)
    endif()
    set(inside "")
    continue()
  endif()
  if(inside STREQUAL "cpp")
    math(EXPR count "${count} + 1")
  endif()
  set(inside "")
  if(block MATCHES "int main\\(")
    list(APPEND programs ${OUT}/${name}_${begin}.cpp)
    file(WRITE ${OUT}/${name}_${begin}.cpp "#line ${begin} \"${DOCUMENT}\"\n${block}")
    continue()
  endif()
  string(REGEX MATCHALL "#include[^\n]*\n" found "${block}")
  foreach(include IN LISTS found)
    string(APPEND includes "${include}")
  endforeach()
  string(REGEX REPLACE "#include[^\n]*" "" block "${block}")
  if(runs)
    string(APPEND body "{\nat(${begin});\n#line ${begin} \"${DOCUMENT}\"\n${block}")
    string(APPEND ends "}")
  else()
    string(APPEND body "if (false) {\n#line ${begin} \"${DOCUMENT}\"\n${block}}\n")
    set(runs TRUE)
  endif()
endwhile()
if(NOT inside STREQUAL "")
  message(FATAL_ERROR "${DOCUMENT}:${begin}: this block has no end")
endif()

if(count EQUAL 0 AND NOT NO_BLOCKS)
  message(FATAL_ERROR "${DOCUMENT}: there is no ```cpp block; NO_BLOCKS=ON expects none")
endif()
if(mentioned OR NOT body STREQUAL "")
  file(WRITE ${OUT}/${name}.cpp "${includes}#include <chainfold/chainfold.hpp>
void at(int line) { std::cerr << \"${DOCUMENT}:\" << line << \"\\n\"; }
struct NotSo : std::exception {
  const char* what() const noexcept override { return \"a check() of the document does not hold\"; }
};
void check(bool holds, int line = __builtin_LINE()) {
  if (holds) return;
  at(line);
  throw NotSo();
}
bool reached_the_end = false;
void blocks() {
${names}${body}
reached_the_end = true;
${ends}
}
int main() {
  try {
    blocks();
    if (!reached_the_end) throw NotSo();
  } catch (const std::exception& error) {
    std::cerr << error.what() << \"\\n\";
    return 1;
  }
}
namespace mentioned {
${known}}
")
  build_and_run(${OUT}/${name}.cpp)
endif()
foreach(program IN LISTS programs)
  build_and_run(${program})
endforeach()
if(LIBRARY)
  foreach(begin IN LISTS expected_lines)
    check_printed("${expected_${begin}}" ${begin})
  endforeach()
endif()
message("${count} blocks compile")
