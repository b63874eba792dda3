# Installs BUILD into a temporary folder, moves it (a package must not know where it was made),
# configures and builds tests/package against it outside the tree, runs it and compares what it prints.
set(tmp $ENV{TMPDIR})
if(NOT tmp)
  set(tmp /tmp)
endif()
string(RANDOM LENGTH 12 name)
set(work ${tmp}/chainfold-package-${name})
file(MAKE_DIRECTORY ${work})

function(step title)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log)
  if(NOT status EQUAL 0)
    file(REMOVE_RECURSE ${work})
    message("${log}")
    message(FATAL_ERROR "${title} failed (${status})")
  endif()
  set(log "${log}" PARENT_SCOPE)
endfunction()

foreach(variable LD_LIBRARY_PATH CHAINFOLD_CPU_PLUGIN)  # the package must find its own parts
  unset(ENV{${variable}})
endforeach()
step("cmake --install" ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${work}/staged)
file(RENAME ${work}/staged ${work}/prefix)
file(COPY ${SOURCE}/ DESTINATION ${work}/user)
step("configuring the user's project" ${CMAKE_COMMAND} -S ${work}/user -B ${work}/build
  -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_PREFIX_PATH=${work}/prefix
  -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON
  -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON -DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON)
file(STRINGS ${work}/build/CMakeCache.txt found REGEX "^chainfold_DIR:PATH=${work}/prefix/")
if(NOT found)
  file(REMOVE_RECURSE ${work})
  message("${log}")
  message(FATAL_ERROR "find_package(chainfold) found another installation than the staged one")
endif()
step("building the user's project" ${CMAKE_COMMAND} --build ${work}/build --config ${CONFIG})
find_program(program frames PATHS ${work}/build ${work}/build/${CONFIG} NO_DEFAULT_PATH NO_CACHE)
step("running the user's program" ${program})
file(REMOVE_RECURSE ${work})
set(line "mean 1.000 rms 2.236\n")
if(NOT log STREQUAL "${line}${line}${line}${line}")
  message(FATAL_ERROR "the user's program should print four times ${line}but printed:\n${log}")
endif()
