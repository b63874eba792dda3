# Checks that FILE does not compile, that an error or note of the compiler matches the regular
# expression on its first line (// expect: REGEX, in CMake's syntax), and that FILE does compile with
# CHAINFOLD_COMPILE_FAIL_CONTROL defined, so that it cannot fail for another reason. HEADER was compiled
# ahead by the same compiler with the same options; it takes most of the time otherwise.
file(STRINGS ${FILE} first_line LIMIT_COUNT 1)
if(NOT first_line MATCHES "^// expect: (.+)$")
  message(FATAL_ERROR "${FILE}:1: the first line must read // expect: REGEX")
endif()
set(expected "${CMAKE_MATCH_1}")
file(READ ${FILE} text)
if(NOT text MATCHES "CHAINFOLD_COMPILE_FAIL_CONTROL")
  message(FATAL_ERROR "${FILE}: has no control; put the mistake under #ifndef CHAINFOLD_COMPILE_FAIL_CONTROL")
endif()

set(ENV{LC_ALL} C)
set(compile ${COMPILER} -std=c++20 -fsyntax-only -fdiagnostics-color=never -Wall -Wextra -I${INCLUDE}
  -include ${HEADER})
execute_process(COMMAND ${compile} -DCHAINFOLD_COMPILE_FAIL_CONTROL ${FILE}
  RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log)
if(NOT status EQUAL 0)
  message("${log}")
  message(FATAL_ERROR "${FILE}: the control must compile")
endif()
execute_process(COMMAND ${compile} ${FILE}
  RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log)
if(status EQUAL 0)
  message(FATAL_ERROR "${FILE}: compiles, but must be refused with: ${expected}")
endif()
# Only the compiler's own words count, FILE:LINE:COLUMN: WORDS, not the source lines it quotes.
set(rest "${log}\n")
string(FIND "${rest}" "\n" end)
while(NOT end EQUAL -1)
  string(SUBSTRING "${rest}" 0 ${end} line)
  if(line MATCHES "^[^ ]+:[0-9]+:[0-9]+: +(.*)$")
    set(words "${CMAKE_MATCH_1}")
    if(words MATCHES "${expected}")
      return()
    endif()
  endif()
  math(EXPR end "${end} + 1")
  string(SUBSTRING "${rest}" ${end} -1 rest)
  string(FIND "${rest}" "\n" end)
endwhile()
message("${log}")
message(FATAL_ERROR "${FILE}: refused, but without the message: ${expected}")
