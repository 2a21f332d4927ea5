// Package doctor looks a bus directory over and says what is wrong and what to do.
//
// It works on the files, under the directory's lock, so that nothing moves meanwhile. While
// a bus serves the directory only what can be seen beside it is looked at, and the report
// says so. [Examine] changes nothing. [Repair] has projections made again and removes what
// a killed bus left behind; it touches no fact.
package doctor
