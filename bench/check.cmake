# The suites reduce, scan, papers and plans from end to end on small data on the CPU.
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
set(bench ${BENCH} --suite reduce --target cpu --elements 1048576 --seconds 0.002 --void-above 1000
  --only "/f16/(64|whole)$|i8/777$|sum/f32/64/cache|axis0/f32/1000$" --out ${file} --resume-dirty)
# Nine cases: sum, mean_var, dot, min_max, filtered_sum of f16 at 64, one whole sum, one of i8, one of
# columns, one from cache.
run_and_expect("9 cases, [0-9]+ rows measured, 0 were in the file already" ${bench})
run_and_expect("0 cases, 0 rows measured, [0-9]+ were in the file already" ${bench})
run_and_expect("sum/f16/64 +numpy" ${PYTHON} ${SOURCE}/peers.py ${file} --impl numpy --seconds 0.002)
run_and_expect("### sum/f16.*64.* 2.20 " ${PYTHON} ${SOURCE}/plot.py ${file} --table)
run_and_expect("### sum_axis0/f32.*1000.*### sum/f32/cache.*64" ${PYTHON} ${SOURCE}/plot.py ${file} --table)
run_and_expect("\\| recurrence .*ran in no row" ${PYTHON} ${SOURCE}/plot.py ${file} --strategies)
file(GLOB files ${FOLDER}/*)
if(NOT "${files}" STREQUAL "${file}")
  message(FATAL_ERROR "files are left: ${files}")
endif()

set(scans ${FOLDER}/scan.json)
set(bench ${BENCH} --suite scan --target cpu --elements 1048576 --seconds 0.002 --void-above 1000
  --only "scan/f16/(24|4099|whole)$|small/f32/65536|scan/i8|(exclusive|max|place)/f16/1024" --out ${scans} --resume-dirty)
run_and_expect("8 cases, [0-9]+ rows measured, 0 were in the file already" ${bench})
run_and_expect("0 cases, 0 rows measured, [0-9]+ were in the file already" ${bench})
run_and_expect("scan/f16/24 +numpy" ${PYTHON} ${SOURCE}/peers.py ${scans} --impl numpy --seconds 0.002)
run_and_expect("### scan/f16.*24.*### scan_in_place/f16.*1024" ${PYTHON} ${SOURCE}/plot.py ${scans} --table)

set(bench ${BENCH} --suite ragged --target cpu --elements 1048576 --seconds 0.002 --void-above 1000
  --only "^(ragged/(zipf|giant|all_but_one_empty)|heads/geometric)/(f32|f64)|scan/geometric/f(32/1000|16)")
run_and_expect("10 cases, [0-9]+ rows measured, 0 were in the file already" ${bench})

set(papers ${FOLDER}/papers.json)
set(bench ${BENCH} --suite papers --target cpu --elements 1048576 --seconds 0.002 --void-above 1000
  --only "variants/.*/2.18|scan_segments/(16|2.20)$" --out ${papers} --resume-dirty)
run_and_expect("6 cases, [0-9]+ rows measured, 0 were in the file already" ${bench})
run_and_expect("0 cases, 0 rows measured, [0-9]+ were in the file already" ${bench})
configure_file(${SOURCE}/../docs/papers.md ${FOLDER}/papers.md COPYONLY)
execute_process(COMMAND ${PYTHON} ${SOURCE}/plot.py ${papers} --papers ${FOLDER}/papers.md RESULT_VARIABLE status)
file(READ ${FOLDER}/papers.md page)
if(NOT status EQUAL 0 OR NOT page MATCHES "uniform data\n\n.*\\| 2.18 \\| [0-9.e-]+ \\| [0-9.e-]+ \\|" OR
    NOT page MATCHES "Scans of everything: error in per cent, uniform data\n\n[^#]*\\| 2.18 \\| [0-9.e-]+ \\|" OR
    NOT page MATCHES "Scans of segments: [^#]*\\| 16 \\| [0-9.]+ [^#]*\\| 2.20 \\| [0-9.]+ ")
  message(FATAL_ERROR "papers.md was not filled:\n${page}")
endif()

file(WRITE ${FOLDER}/list.txt "sum f16 f16 64 0\nsum f16 f16 64 0 rows warps=1 depth=8 rows=8 bytes=16 simt\n\
inclusive_sum f32 f32 whole 65536  # few\n")
set(bench ${BENCH} --suite plans --target cpu --elements 1048576 --seconds 0.002 --void-above 1000)
run_and_expect("2 cases, 3 rows measured" ${bench} --plans ${FOLDER}/list.txt)
# What matches nothing or cannot be written is told before anything is measured, and leaves no file.
function(expect_refusal words)
  execute_process(COMMAND ${BENCH} --target cpu --elements 1048576 ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  if(status EQUAL 0 OR NOT output MATCHES "${words}" OR output MATCHES "\\[1/" OR EXISTS ${FOLDER}/none.json)
    message(FATAL_ERROR "${ARGN}: status ${status}, expected '${words}' in:\n${output}")
  endif()
endfunction()
expect_refusal("--only: 'zzz' matches nothing; --list" --suite reduce --only zzz --out ${FOLDER}/none.json)
expect_refusal("--only: 'zzz' matches nothing" --suite reduce --only zzz --list)
expect_refusal("--only: 'zzz' matches nothing" --suite first --only zzz --out ${FOLDER}/none.json)
expect_refusal("--impl: 'zzz' matches nothing; .*chainfold chosen, openmp-simd"
  --suite reduce --only sum/f16/64 --impl zzz --out ${FOLDER}/none.json)
foreach(suite first reduce)
  expect_refusal("none/x.json cannot be written: No such file" --suite ${suite} --only sum --out ${FOLDER}/none/x.json)
endforeach()
execute_process(COMMAND ${bench} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
if(status EQUAL 0 OR NOT output MATCHES "the suite plans needs --plans FILE")
  message(FATAL_ERROR "the suite plans ran without a list: ${output}")
endif()
