# Writes the text of FILES as one C++ raw string literal to OUT, to be #included as an initializer.
set(text "")
foreach(file IN LISTS FILES)
  file(READ ${file} part)
  string(APPEND text "${part}")
endforeach()
file(WRITE ${OUT} "R\"chainfold(${text})chainfold\"\n")
