# The suite reduce from end to end on small data on the CPU.
# -DBENCH, -DPYTHON: programs; -DSOURCE: the folder of the scripts; -DFOLDER: made anew.
function(run_and_expect pattern)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "${ARGN}: status ${status}, expected '${pattern}' in:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
set(file ${FOLDER}/reduce.json)
set(bench ${BENCH} --suite reduce --target cpu --elements 1048576 --seconds 0.002 --void-above 1
  --only "/f16/(64|whole)$|i8/777$" --out ${file} --resume-dirty)
# Seven cases: sum, mean_var, dot, min_max, filtered_sum of f16 at 64, one whole sum, one of i8.
run_and_expect("7 cases, 1?[0-9]+ rows measured, 0 were in the file already" ${bench})
run_and_expect("0 cases, 0 rows measured, 1?[0-9]+ were in the file already" ${bench})
run_and_expect("sum/f16/64 +numpy" ${PYTHON} ${SOURCE}/peers.py ${file} --impl numpy --seconds 0.002)
run_and_expect("### sum/f16.*\\| 64 " ${PYTHON} ${SOURCE}/plot.py ${file} --table)
file(GLOB files ${FOLDER}/*)
if(NOT "${files}" STREQUAL "${file}")
  message(FATAL_ERROR "files are left: ${files}")
endif()
